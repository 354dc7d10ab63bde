package e2e

import (
	"maps"
	"strings"
	"testing"

	yaml "github.com/oasdiff/yaml3"
)

// object has the fields of the objects of kubernetes.yaml that the tests read.
type object struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Spec struct {
		Replicas    int
		ServiceName string         `yaml:"serviceName"`
		JobLabel    string         `yaml:"jobLabel"`
		Selector    map[string]any // of a Service the labels, of the others matchLabels
		Ports       []struct {
			Name       string
			TargetPort string `yaml:"targetPort"`
		}
		Endpoints []struct{ Port string }
		Template  struct {
			Metadata struct{ Labels map[string]any }
			Spec     struct {
				SecurityContext map[string]any `yaml:"securityContext"`
				Containers      []struct {
					Ports []struct {
						Name          string
						ContainerPort string `yaml:"containerPort"`
					}
					Startup   probe `yaml:"startupProbe"`
					Liveness  probe `yaml:"livenessProbe"`
					Readiness probe `yaml:"readinessProbe"`
					Mounts    []struct {
						Name string
						Path string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
			}
		}
		Claims []object `yaml:"volumeClaimTemplates"`
	}
}

type probe struct {
	Get      struct{ Path, Port string } `yaml:"httpGet"`
	Period   int                         `yaml:"periodSeconds"`
	Failures int                         `yaml:"failureThreshold"`
}

// The objects of kubernetes.yaml fit together, and with the image: labels, ports, user and volume. Each probe has an answer. That each
// field exists is checked by make manifest-lint.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	objects, decoder := map[string]object{}, yaml.NewDecoder(strings.NewReader(text(t, "server/deploy/kubernetes.yaml")))
	for range 4 {
		var o object
		must(t, decoder.Decode(&o))
		objects[o.Kind+" "+o.Metadata.Name] = o
	}
	set, public, admin, monitor := objects["StatefulSet strikecache"], objects["Service strikecache"], objects["Service strikecache-admin"], objects["ServiceMonitor strikecache"]
	if len(objects) != 4 || len(set.Spec.Template.Spec.Containers) != 1 || len(set.Spec.Claims) != 1 {
		t.Fatalf("%+v", objects)
	}
	pod, container, image := set.Spec.Template, set.Spec.Template.Spec.Containers[0], text(t, "server/deploy/Dockerfile")
	if mount := container.Mounts[0]; mount.Name != set.Spec.Claims[0].Metadata.Name || !strings.Contains(image, "STRIKECACHE_DATA_DIR="+mount.Path+"\n") {
		t.Errorf("the image stores its data elsewhere than in %+v", mount)
	}
	if set.Spec.Replicas != 1 || set.Spec.ServiceName != admin.Metadata.Name || pod.Spec.SecurityContext["runAsUser"] != 65532 || !strings.Contains(image, "--chown=65532:65532 ") {
		t.Errorf("%+v", set.Spec)
	}
	ports := map[string]string{}
	for _, p := range container.Ports {
		ports[p.Name] = p.ContainerPort
	}
	if !strings.Contains(image, "STRIKECACHE_LISTEN=:"+ports["http"]+" STRIKECACHE_ADMIN_LISTEN=:"+ports["admin"]+" ") || len(ports) != 2 {
		t.Errorf("the image does not listen on %v", ports)
	}
	if public.Spec.Ports[0].TargetPort != "http" || admin.Spec.Ports[0].TargetPort != "admin" || monitor.Spec.Endpoints[0].Port != admin.Spec.Ports[0].Name {
		t.Errorf("%+v %+v %+v", public.Spec.Ports, admin.Spec.Ports, monitor.Spec.Endpoints)
	}
	if s := container.Startup; s.Period*s.Failures < 3600 {
		t.Errorf("a start that reads a long history from a slow disk is killed after %d s", s.Period*s.Failures)
	}
	labels := pod.Metadata.Labels
	if !maps.Equal(public.Spec.Selector, labels) || !maps.Equal(admin.Spec.Selector, labels) || !maps.Equal(set.Spec.Selector["matchLabels"].(map[string]any), labels) {
		t.Errorf("not every selector is %v", labels)
	}
	for name, value := range monitor.Spec.Selector["matchLabels"].(map[string]any) {
		equal(t, any(admin.Metadata.Labels[name]), value, "the ServiceMonitor wants %s", name)
	}
	if maps.Equal(public.Metadata.Labels, admin.Metadata.Labels) || admin.Metadata.Labels[monitor.Spec.JobLabel] != "strikecache" {
		t.Errorf("labels %v and %v, job of %s", public.Metadata.Labels, admin.Metadata.Labels, monitor.Spec.JobLabel)
	}
	operated := shared(t)
	for _, p := range []probe{container.Startup, container.Liveness, container.Readiness} {
		if p.Get.Port != "admin" || !strings.HasPrefix(operated.operator(p.Get.Path), "{") {
			t.Errorf("%+v", p)
		}
	}
}
