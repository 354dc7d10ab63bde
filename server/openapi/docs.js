// The search of the page, buttons that copy a command, and this server's address in the commands. Without this script the
// page shows the same text.

const found = document.getElementById('found');
const field = document.getElementById('search');
const count = document.getElementById('count');
const most = 40; // results shown

/** entries are what the search finds: endpoints and the rows of all tables that have an id. */
const entries = [...document.querySelectorAll('article[id], tr[id]')].map((element) => {
  const isRow = element.localName === 'tr';
  const name = isRow ? element.cells[0].textContent : element.querySelector('h3').textContent;
  const within = isRow ? element.closest('[id]:is(article, section)').querySelector('h2, h3').textContent : '';
  const about = isRow ? element.cells[2].textContent : element.querySelector('.lead').textContent;
  const codes = isRow && element.id.startsWith('response-') ? element.cells[1].textContent : '';
  const path = isRow && element.id.includes('.') ? element.id.replace(/^[^.]*\.(?=.)/, '') : '';
  return { id: element.id, isRow, name: codes || name, path: path || codes || name, within, about, text: `${element.id} ${name} ${codes} ${within} ${about}`.toLowerCase().replaceAll('_', ' ') };
});

/** rank puts a name that begins with the words before one that has them, and this before a description. */
function rank(entry, query) {
  const name = entry.name.toLowerCase().replaceAll('_', ' ');
  return (name.startsWith(query) ? 0 : name.includes(query) ? 1 : 2) + (entry.isRow ? 0.5 : 0);
}

function search() {
  const query = field.value.toLowerCase().replaceAll('_', ' ').trim();
  const words = query.split(/\s+/);
  const all = query ? entries.filter((e) => words.every((w) => e.text.includes(w))).sort((a, b) => rank(a, query) - rank(b, query)) : [];
  found.replaceChildren(...all.slice(0, most).map(result));
  count.textContent = !query ? '' : all.length === 0 ? 'Nothing has these words.' : all.length > most ? `The first ${most} of ${all.length} results` : `${all.length} ${all.length === 1 ? 'result' : 'results'}`;
  document.body.classList.toggle('searching', !!query);
}

function result(entry) {
  const link = document.createElement('a');
  link.href = `#${entry.id}`;
  const [name, about] = [document.createElement('code'), document.createElement('span')];
  name.textContent = entry.path;
  about.textContent = [entry.within, entry.about].filter(Boolean).join(' · ');
  link.append(name, about);
  const item = document.createElement('li');
  item.append(link);
  return item;
}

/** keep puts the words into the address, so that a reload and a link show the same results. */
function keep() {
  const query = new URLSearchParams(location.search);
  if (field.value.trim()) query.set('q', field.value);
  else query.delete('q');
  const text = query.toString();
  history.replaceState(null, '', `${location.pathname}${text && `?${text}`}${location.hash}`);
}

/** step moves the focus from the field to the results and through them. */
function step(event) {
  const links = [...found.querySelectorAll('a')];
  const at = links.indexOf(document.activeElement);
  const to = { ArrowDown: Math.min(at + 1, links.length - 1), ArrowUp: at - 1 }[event.key];
  if (to === undefined || links.length === 0) return;
  event.preventDefault();
  (links[to] ?? field).focus();
}

field.addEventListener('input', () => {
  search();
  keep();
});
field.addEventListener('keydown', (event) => {
  if (event.key === 'Enter') found.querySelector('a')?.click();
});
field.closest('.search').addEventListener('keydown', (event) => {
  step(event);
  if (event.key !== 'Escape') return;
  field.value = '';
  search();
  keep();
  field.focus();
});
addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input')) return;
  event.preventDefault();
  field.focus();
});
addEventListener('beforeprint', () => { for (const details of document.querySelectorAll('details')) details.open = true; });

for (const origin of document.querySelectorAll('.origin')) origin.textContent = location.origin;
if (navigator.clipboard) {
  for (const command of document.querySelectorAll('.curl')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = 'Copy';
    button.addEventListener('click', async () => {
      const copied = await navigator.clipboard.writeText(command.textContent).then(() => true, () => false);
      button.textContent = copied ? 'Copied' : 'Not copied';
    });
    const row = document.createElement('div');
    row.className = 'copy';
    command.replaceWith(row);
    row.append(command, button);
  }
}
field.closest('.search').hidden = false;
field.value = new URLSearchParams(location.search).get('q') ?? '';
search();
