package archive

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-json"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"strikecache/compute"
	"strikecache/snapshots"
)

// The errors of reading the archive.
var (
	// ErrGone is a recipe or a document that the archive does not have.
	ErrGone = errors.New("not in the archive")
	// ErrAltered is a file whose content does not have its digest.
	ErrAltered = errors.New("archived file is torn or altered")
)

// Recipe says what a stored answer was computed from.
type Recipe struct {
	Product string `json:"product"`
	Date    string `json:"date"` // under which the answer is stored, YYYY-MM-DD
	Method  string `json:"method"`
	Build   string `json:"build"` // toolchain and architecture, on which last digits may depend
	// ComputedAt is the clock's time of the computation.
	ComputedAt time.Time `json:"computed_at"`
	// Parameters and Inputs are those of the receipt.
	Parameters json.RawMessage `json:"parameters,omitempty"`
	Inputs     []Input         `json:"inputs"`

	// The fields below are read in recipes of format 1. They are no longer written.

	Closed []compute.Date `json:"closed,omitempty"` // further exchange closures
	Early  []compute.Date `json:"early,omitempty"`  // further early closes
	States []Input        `json:"states,omitempty"` // documents that are not in the receipt
}

// Input names a document.
type Input struct {
	Name     string    `json:"name"`
	SHA256   string    `json:"sha256"`
	Received time.Time `json:"received"`
	// Generated and FileDate are what the upstream said about the document; zero if it did not say.
	Generated time.Time `json:"generated"`
	FileDate  string    `json:"file_date,omitempty"`
}

// Document is an input with its bytes, in one form or both. It has neither if an earlier Put had them.
type Document struct {
	Input
	Body []byte
	Gzip []byte // as the upstream sent it, in gzip; nil if the upstream sent it in another way
}

// Drop releases the bytes.
func (d *Document) Drop() { d.Body, d.Gzip = nil, nil }

// digests returns the digests of all documents that a recipe names.
func (r *Recipe) digests() []string {
	var out []string
	for _, list := range [][]Input{r.Inputs, r.States} {
		for _, in := range list {
			out = append(out, in.SHA256)
		}
	}
	return out
}

// Dir returns where the archive of a source lies in a data directory.
func Dir(dataDir, source string) string { return filepath.Join(dataDir, source, dirName) }

const (
	dirName        = "archive"
	documentSuffix = ".gz"
	olderSuffix    = ".zst" // of the documents that earlier versions wrote
	recipeSuffix   = ".json"
	recipeFormat   = 2 // of the recipes that are written; lower formats can be read
	// maxDocument bounds one document, unpacked. The largest real one has 14 MB.
	maxDocument = 64 << 20
	// maxRecipe bounds a recipe. The largest of format 1, a VIX curve after twenty years of history, took 1 MB.
	maxRecipe = 16 << 20
)

// recipeFile names the recipe of a product and a date: names sort by date.
func recipeFile(product, date string) string {
	return date + "_" + snapshots.FileName(product) + recipeSuffix
}

// documentDigest returns the digest in the name of a document's file, "" if the file is a recipe.
func documentDigest(file string) string {
	for _, suffix := range []string{documentSuffix, olderSuffix} {
		if digest, ok := strings.CutSuffix(file, suffix); ok {
			return digest
		}
	}
	return ""
}

// dateOf returns the date of a recipe's file.
func dateOf(recipe string) string { return recipe[:len(time.DateOnly)] }

// isRecipe says whether a file has the name of a recipe.
func isRecipe(file string) bool {
	date, _, ok := strings.Cut(file, "_")
	_, err := compute.ParseDate(date)
	return ok && err == nil && strings.HasSuffix(file, recipeSuffix)
}

// encodeRecipe returns two lines: the format with the digest of line 2, and the recipe as JSON.
func encodeRecipe(r *Recipe) ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode recipe of %s: %w", r.Product, err)
	}
	body = append(body, '\n')
	return append(fmt.Appendf(nil, `{"format":%d,"sha256":"%s"}`+"\n", recipeFormat, hexDigest(body)), body...), nil
}

// decodeRecipe decodes the content of a recipe file. The recipe must be the one that the file's name says.
func decodeRecipe(b []byte, file string) (*Recipe, error) {
	line, body, ok := bytes.Cut(b, []byte{'\n'})
	var head struct {
		Format int    `json:"format"`
		SHA256 string `json:"sha256"`
	}
	if !ok || json.Unmarshal(line, &head) != nil || head.Format < 1 {
		return nil, fmt.Errorf("%w: no header", ErrAltered)
	}
	if head.Format > recipeFormat {
		return nil, fmt.Errorf("%w: %d, this version reads up to %d", snapshots.ErrNewerFormat, head.Format, recipeFormat)
	}
	if head.SHA256 != hexDigest(body) {
		return nil, fmt.Errorf("%w: digest differs", ErrAltered)
	}
	r := &Recipe{}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAltered, err)
	}
	if recipeFile(r.Product, r.Date) != file {
		return nil, fmt.Errorf("%w: it has the recipe of %.40q on %.20q", ErrAltered, r.Product, r.Date)
	}
	return r, nil
}

// ReadRecipe reads the recipe of a product and a date in an archive's directory. It takes no lock and changes
// nothing. The error is ErrGone when there is no such recipe.
func ReadRecipe(dir, product, date string) (*Recipe, error) {
	return readRecipe(dir, recipeFile(product, date))
}

func readRecipe(dir, file string) (*Recipe, error) {
	b, err := readFile(filepath.Join(dir, file), maxRecipe)
	if err != nil {
		return nil, err
	}
	return decodeRecipe(b, file)
}

// ReadDocument reads the document of a digest in an archive's directory and checks it. The error is ErrGone when there is no
// such document, and ErrAltered when its content does not have the digest.
func ReadDocument(dir, sha256 string) ([]byte, error) {
	path := filepath.Join(dir, filepath.Base(sha256))
	body, err := readDocument(path+documentSuffix, sha256)
	if err != nil {
		if older, olderErr := readDocument(path+olderSuffix, sha256); olderErr == nil {
			return older, nil
		} else if errors.Is(err, ErrGone) {
			err = olderErr
		}
	}
	return body, err
}

// readDocument reads the document of a digest in a file, in the form that the name of the file says.
func readDocument(path, sha256 string) ([]byte, error) {
	packed, err := readFile(path, maxDocument)
	if err != nil {
		return nil, err
	}
	unpack := gunzip
	if strings.HasSuffix(path, olderSuffix) {
		unpack = unzstd
	}
	body, err := unpack(packed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAltered, err)
	}
	if hexDigest(body) != sha256 {
		return nil, fmt.Errorf("%w: digest differs", ErrAltered)
	}
	return body, nil
}

func gunzip(packed []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, maxDocument))
}

func unzstd(packed []byte) ([]byte, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxDocument))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return z.DecodeAll(packed, nil)
}

func readFile(path string, limit int64) (b []byte, err error) {
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > limit) {
		return nil, fmt.Errorf("%w: not a regular file of at most %d bytes", ErrAltered, limit)
	}
	if err == nil {
		b, err = os.ReadFile(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrGone
	}
	return b, err
}

func hexDigest(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// Verify checks every file of the archives of all sources in a data directory. It returns how many files it read, and the
// bad ones. It takes no lock and changes nothing; a running server may keep writing.
func Verify(dataDir string) (files int, bad []snapshots.BadFile, err error) {
	dirs, err := filepath.Glob(filepath.Join(dataDir, "*", dirName))
	if err != nil {
		return 0, nil, err
	}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return files, bad, err
		}
		for _, e := range entries {
			switch digest := documentDigest(e.Name()); {
			case digest != "":
				_, err = readDocument(filepath.Join(dir, e.Name()), digest)
			case isRecipe(e.Name()):
				_, err = readRecipe(dir, e.Name())
			default:
				continue
			}
			if errors.Is(err, ErrGone) {
				continue // removed meanwhile
			}
			if err != nil {
				bad = append(bad, snapshots.BadFile{Path: filepath.Join(dir, e.Name()), Err: err})
			}
			files++
		}
	}
	return files, bad, nil
}
