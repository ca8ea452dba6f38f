"""What the manifests allow tacho, and that all of them hang together."""

import copy
import re
import subprocess

import pytest
import yaml

from support import kustomize, promtool
from support.paths import REPOSITORY, TACHO, require
from support.pinned import KUSTOMIZE, Unavailable
from support.process import run

HOST_PATHS = {"/sys/fs/cgroup", "/var/log/containers"}
NODE_COMPONENTS = ["prometheus-operator", "annotations", "restricted-node", "localhost-seccomp"]
NODE_OVERLAYS = ["base", *(f"overlays/{component}" for component in NODE_COMPONENTS), "examples/combined"]
RESTRICTED = {"overlays/restricted-node", "examples/combined"}
RUNTIME_DEFAULT = {"type": "RuntimeDefault"}
LOCALHOST = {"type": "Localhost", "localhostProfile": "tacho.json"}
SIDECAR = "examples/sidecar"
WORKLOADS = {"Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"}
CLUSTER_WIDE = {"Namespace", "PriorityClass"}


@pytest.fixture(scope="module", autouse=True)
def tool():
    try:
        KUSTOMIZE.path()
    except Unavailable as error:
        pytest.skip(f"the manifests are not rendered: {error}")


def objects_of(name: str) -> list[dict]:
    return kustomize.build(kustomize.kustomizations()[name])


def pod_of(name: str) -> dict:
    """The specification of the pods that run tacho."""
    objects = objects_of(name)
    return kustomize.one(objects, "DaemonSet")["spec"]["template"]["spec"]


def template_of(workload: dict) -> dict:
    spec = workload["spec"]
    return spec.get("jobTemplate", {"spec": spec})["spec"]["template"]


def sidecars() -> dict[str, dict]:
    """Pod templates by name of the workload."""
    return {thing["metadata"]["name"]: template_of(thing) for thing in objects_of(SIDECAR) if thing["kind"] in WORKLOADS}


def tacho_of(pod: dict) -> dict:
    containers = [*pod["containers"], *pod.get("initContainers", [])]
    (container,) = [container for container in containers if container["name"] == "tacho"]
    return container


NODE_PROBES = {"startupProbe", "livenessProbe", "readinessProbe"}
# A sidecar that is not ready would take the requests from who is well and merely watched.
SIDECAR_PROBES = NODE_PROBES - {"readinessProbe"}


def violations(
    pod: dict, host_paths: set[str], host_processes: bool = False, seccomp=RUNTIME_DEFAULT, probes: set[str] = NODE_PROBES
) -> list[str]:
    """What is more than tacho needs, or less than a container should say."""
    container = tacho_of(pod)
    security = container["securityContext"]
    found = [key for key in ("hostNetwork", "hostIPC") if pod.get(key)]
    if bool(pod.get("hostPID")) != host_processes:
        found.append("hostPID")
    if security.get("privileged") is not False or security.get("allowPrivilegeEscalation") is not False:
        found.append("privilege")
    if security.get("readOnlyRootFilesystem") is not True:
        found.append("writable root")
    capabilities = security.get("capabilities", {})
    if capabilities.get("drop") != ["ALL"] or set(capabilities.get("add", [])) != {"BPF", "PERFMON"}:
        found.append("capabilities")
    if {**pod.get("securityContext", {}), **security}.get("seccompProfile") != seccomp:
        found.append("seccomp")
    if "hostPort" in str(container.get("ports")):
        found.append("hostPort")
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    paths = {volume["hostPath"]["path"] for volume in volumes.values() if "hostPath" in volume}
    if paths != host_paths:
        found.append(f"host paths {sorted(paths)}")
    if {mount["name"] for mount in container["volumeMounts"]} - set(volumes):
        found.append("mount without volume")
    if not all(mount.get("readOnly") is True for mount in container["volumeMounts"]):
        found.append("writable mount")
    resources = container.get("resources", {})
    if not {"cpu", "memory"} <= set(resources.get("requests", {})) or set(resources.get("limits", {})) != {"memory"}:
        found.append("resources")
    found += sorted(probes ^ {key for key in container if key.endswith("Probe")})
    return found


@pytest.mark.parametrize("name", NODE_OVERLAYS)
def test_node_pod_has_what_it_needs_and_no_more(name):
    pod = pod_of(name)
    restricted = name in RESTRICTED
    seccomp = LOCALHOST if name == "overlays/localhost-seccomp" else RUNTIME_DEFAULT
    assert violations(pod, HOST_PATHS, host_processes=not restricted, seccomp=seccomp) == []
    assert pod["automountServiceAccountToken"] is False and pod["serviceAccountName"] == "tacho"
    assert pod["tolerations"] == [{"operator": "Exists"}]


def test_sidecar_is_in_the_pods_of_every_kind_of_workload_but_of_those_that_say_no():
    kinds = {thing["kind"] for thing in objects_of(SIDECAR)}
    assert WORKLOADS <= kinds
    templates = sidecars()
    without = templates.pop("secret")
    assert "initContainers" not in without["spec"] and "tacho-sidecar" not in without["metadata"]["labels"]
    assert len(templates) == len(WORKLOADS)
    for name, template in templates.items():
        assert violations(template["spec"], set(), probes=SIDECAR_PROBES) == [], name
        (sidecar,) = template["spec"]["initContainers"]
        assert sidecar["restartPolicy"] == "Always", "it runs beside the others, and is there before them"
        assert sidecar == templates["api"]["spec"]["initContainers"][0], "the same in all of them"


def test_sidecars_are_scraped_under_the_labels_of_their_pod():
    monitor = kustomize.one(objects_of(SIDECAR), "PodMonitor")
    namespace = monitor["metadata"]["namespace"]
    for thing in objects_of(SIDECAR):
        if thing["kind"] in WORKLOADS:
            assert thing["metadata"]["namespace"] == namespace == "shop"
    for name, template in sidecars().items():
        selected = monitor["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
        assert selected == (name != "secret")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    ports = {port["name"] for port in tacho_of(sidecars()["api"]["spec"])["ports"]}
    assert endpoint["honorLabels"] is True and endpoint["port"] in ports
    # The scrape's own `container` is tacho; namespace and pod are the observed ones'.
    assert {"action": "labeldrop", "regex": "container"} in endpoint["relabelings"]
    assert monitor["metadata"]["name"] == "tacho" and "jobLabel" not in monitor["spec"], "the rules ask for …/tacho"


def test_old_place_of_the_sidecar_is_the_component(tmp_path):
    (tmp_path / "apps").mkdir()
    (tmp_path / "apps" / "workloads.yaml").write_text((kustomize.ROOT / SIDECAR / "workloads.yaml").read_text())
    (tmp_path / "apps" / "kustomization.yaml").write_text("namespace: shop\nresources: [workloads.yaml]\n")
    old = kustomize.combination(tmp_path / "old", [tmp_path / "apps"], ["../overlays/sidecar/component"], namespace="shop")
    new = [thing for thing in objects_of(SIDECAR) if thing["kind"] != "PodMonitor"]
    assert sorted(map(str, old)) == sorted(map(str, new))


@pytest.mark.parametrize("number", range(2 ** len(NODE_COMPONENTS)))
def test_components_combine(tmp_path, number):
    chosen = [component for bit, component in enumerate(NODE_COMPONENTS) if number >> bit & 1]
    image = {"name": "tacho", "newName": "registry.example.org/tacho", "newTag": "1"}
    objects = kustomize.combination(tmp_path / "mine", [kustomize.ROOT / "base"], chosen, images=[image])
    template = kustomize.one(objects, "DaemonSet")["spec"]["template"]
    assert tacho_of(template["spec"])["image"] == "registry.example.org/tacho:1"
    assert template["spec"]["hostPID"] == ("restricted-node" not in chosen)
    assert ("prometheus.io/scrape" in template["metadata"]["annotations"]) == ("annotations" in chosen)
    assert template["spec"]["securityContext"]["seccompProfile"] == (
        LOCALHOST if "localhost-seccomp" in chosen else RUNTIME_DEFAULT
    )
    assert ("PodMonitor" in {thing["kind"] for thing in objects}) == ("prometheus-operator" in chosen)
    assert all(thing["metadata"].get("namespace") == "tacho" for thing in objects if thing["kind"] not in CLUSTER_WIDE)


def test_a_node_is_asked_once_when_it_has_had_the_time_to_start():
    """A probe that fails makes the kubelet write a Warning."""
    for container, ready in ((tacho_of(pod_of("base")), {"startupProbe", "readinessProbe"}), (tacho_of(sidecars()["api"]["spec"]), {"startupProbe"})):
        probe = container["startupProbe"]
        assert probe["initialDelaySeconds"] >= 1 and probe["periodSeconds"] == 1
        assert container["livenessProbe"]["httpGet"]["path"] == "/-/healthy"
        assert {container[kind]["httpGet"]["path"] for kind in ready} == {"/-/ready"}


def test_what_is_applied_twice_shows_no_difference():
    """The API server leaves out what is empty."""

    def empty(value, path: str) -> list[str]:
        if isinstance(value, dict):
            return [found for key, inner in value.items() for found in empty(inner, f"{path}.{key}")] if value else [path]
        if isinstance(value, list):
            return [found for inner in value for found in empty(inner, f"{path}[]")] if value else [path]
        return [path] if value is None else []

    allowed = {"podSelector", "namespaceSelector"}  # mean everything, and stay
    for name in kustomize.kustomizations():
        for thing in objects_of(name):
            found = [path for path in empty(thing, thing["kind"]) if path.rpartition(".")[2] not in allowed]
            assert found == [], name


@pytest.mark.parametrize(
    ("place", "key", "value", "expected"),
    [
        ("pod", "hostNetwork", True, "hostNetwork"),
        ("pod", "hostPID", False, "hostPID"),
        ("security", "allowPrivilegeEscalation", True, "privilege"),
        ("security", "capabilities", {"drop": ["ALL"], "add": ["BPF", "PERFMON", "SYS_ADMIN"]}, "capabilities"),
        ("container", "resources", {"limits": {"memory": "1Gi"}}, "resources"),
        ("container", "livenessProbe", None, "livenessProbe"),
        ("mount", "readOnly", False, "writable mount"),
        ("volume", "hostPath", {"path": "/", "type": "Directory"}, "host paths"),
    ],
)
def test_violations_are_found(place, key, value, expected):
    pod = copy.deepcopy(pod_of("base"))
    container = tacho_of(pod)
    places = {"pod": pod, "container": container, "security": container["securityContext"],
              "mount": container["volumeMounts"][1], "volume": pod["volumes"][1]}  # fmt: skip
    places[place].pop(key, None)
    if value is not None:
        places[place][key] = value
    assert any(found.startswith(expected) for found in violations(pod, HOST_PATHS, host_processes=True))


@pytest.mark.parametrize("name", NODE_OVERLAYS)
def test_no_right_is_asked_of_the_api_server(name):
    objects = objects_of(name)
    assert not [thing for thing in objects if "Role" in thing["kind"] or thing["kind"] == "Secret"]
    assert kustomize.one(objects, "ServiceAccount")["automountServiceAccountToken"] is False
    labels = kustomize.one(objects, "Namespace")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"
    assert all(thing["metadata"].get("namespace") == "tacho" for thing in objects if thing["kind"] not in CLUSTER_WIDE)
    priority = kustomize.one(objects, "PriorityClass")
    assert pod_of(name)["priorityClassName"] == priority["metadata"]["name"]
    assert 0 < priority["value"] < 1_000_000_000 and not priority.get("globalDefault"), "below Kubernetes' own"


@pytest.mark.parametrize("name", NODE_OVERLAYS)
def test_selectors_select_the_pods_and_ports_exist(name):
    objects = objects_of(name)
    daemon_set = kustomize.one(objects, "DaemonSet")["spec"]
    labels = daemon_set["template"]["metadata"]["labels"].items()
    policy = kustomize.one(objects, "NetworkPolicy")["spec"]
    ports = {port["name"] for port in tacho_of(daemon_set["template"]["spec"])["ports"]}
    assert daemon_set["selector"]["matchLabels"].items() <= labels
    assert policy["podSelector"]["matchLabels"].items() <= labels
    (rule,) = policy["ingress"]
    assert {port["port"] for port in rule["ports"]} == ports == {"metrics"}
    (scraper,) = rule["from"]
    assert scraper["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "prometheus"}
    assert scraper["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "monitoring"}
    assert "egress" not in policy and set(policy["policyTypes"]) == {"Ingress", "Egress"}


def test_operator_scrapes_with_the_labels_of_the_observed():
    objects = objects_of("overlays/prometheus-operator")
    monitor = kustomize.one(objects, "PodMonitor")
    labels = kustomize.one(objects, "DaemonSet")["spec"]["template"]["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert labels[monitor["spec"]["jobLabel"]] == "tacho", "the rules ask for this job"
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["honorLabels"] is True and endpoint["port"] == "metrics"


def test_annotations_name_port_and_path():
    daemon_set = kustomize.one(objects_of("overlays/annotations"), "DaemonSet")
    annotations = daemon_set["spec"]["template"]["metadata"]["annotations"]
    (port,) = tacho_of(daemon_set["spec"]["template"]["spec"])["ports"]
    assert annotations["prometheus.io/scrape"] == "true" and annotations["prometheus.io/path"] == "/metrics"
    assert annotations["prometheus.io/port"] == str(port["containerPort"])


def test_generated_files_are_fresh(tmp_path):
    run([kustomize.ROOT / "generate", tmp_path])
    files = [file.relative_to(tmp_path) for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) >= 4
    for file in files:
        assert (tmp_path / file).read_text() == (REPOSITORY / file).read_text(), "run deploy/kubernetes/generate"


def test_rules_are_those_of_the_repository():
    rules = [thing for thing in objects_of("overlays/prometheus-operator") if thing["kind"] == "PrometheusRule"]
    for rule in rules:
        file = REPOSITORY / "deploy" / "prometheus" / f"{rule['metadata']['name']}.yaml"
        assert rule["spec"] == yaml.safe_load(file.read_text())
    assert len(rules) == 2


def test_every_dashboard_is_a_config_map():
    maps = [thing for thing in objects_of("overlays/prometheus-operator") if thing["kind"] == "ConfigMap"]
    dashboards = [thing for thing in maps if thing["metadata"].get("labels", {}).get("grafana_dashboard") == "1"]
    files = {name: text for thing in dashboards for name, text in thing["data"].items()}
    assert files == {file.name: file.read_text() for file in (REPOSITORY / "grafana/generated").glob("*.json")}
    assert all(len(str(thing)) < 250_000 for thing in dashboards), "kubectl apply keeps a copy in an annotation"


@pytest.mark.parametrize("name", [*NODE_OVERLAYS, SIDECAR])
def test_configuration_is_mounted_and_good(name, tmp_path):
    objects = objects_of(name)
    pod = sidecars()["api"]["spec"] if name == SIDECAR else pod_of(name)
    (volume,) = [volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume]
    (data,) = [thing["data"] for thing in objects if thing["metadata"]["name"] == volume]
    arguments = tacho_of(pod)["args"]
    (mount,) = [mount for mount in tacho_of(pod)["volumeMounts"] if mount["mountPath"] == "/etc/tacho"]
    assert f"--config.file={mount['mountPath']}/tacho.yaml" in arguments
    file = tmp_path / "tacho.yaml"
    file.write_text(data["tacho.yaml"])
    checked = subprocess.run([require(TACHO), "check", f"--config.file={file}"], capture_output=True, text=True)
    assert checked.returncode == 0 and checked.stderr == "", checked.stderr
    assert subprocess.run([require(TACHO), "--help", *arguments], capture_output=True).returncode == 0


def test_image_is_of_this_version():
    version = re.search(r"project\(tacho VERSION (\S+)", (REPOSITORY / "CMakeLists.txt").read_text())[1]
    assert tacho_of(pod_of("base"))["image"] == f"tacho:{version}"
    assert tacho_of(sidecars()["api"]["spec"])["image"] == f"tacho:{version}"


def test_names_of_a_sidecars_containers_are_joined_as_the_component_says(tmp_path):
    text = (kustomize.ROOT / "components/sidecar/kustomization.yaml").read_text()
    lines = text[text.index("#   tacho_requests_total *") : text.index("apiVersion:")].splitlines()
    query = " ".join(line.removeprefix("#").strip() for line in lines)
    series = {
        'tacho_requests_total{namespace="shop",pod="a",target="pod",container_id="111"}': "0+60x20",
        'kube_pod_container_info{namespace="shop",pod="a",container="api",container_id="containerd://111"}': "1x20",
        'kube_pod_container_info{namespace="shop",pod="a",container="cache",container_id="containerd://222"}': "1x20",
    }
    ((labels, value),) = promtool.answers(query, tmp_path, series)
    assert labels["container"] == "api" and labels["container_id"] == "111" and value == 1200


def test_every_kustomization_is_tested():
    assert set(kustomize.kustomizations()) == {*NODE_OVERLAYS, SIDECAR, "autoscaling/hpa", "autoscaling/keda"}


def test_only_prometheus_reaches_the_port_and_tacho_nobody():
    policy = kustomize.one(objects_of("base"), "NetworkPolicy")["spec"]
    labels = kustomize.one(objects_of("base"), "DaemonSet")["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"} and "egress" not in policy
    (rule,) = policy["ingress"]
    (peer,) = rule["from"]  # one peer: namespace and label both, not either
    assert peer["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "monitoring"}
    assert peer["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "prometheus"}
    (port,) = rule["ports"]
    assert port["port"] in {port["name"] for port in tacho_of(pod_of("base"))["ports"]}
