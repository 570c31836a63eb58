"""The Kubernetes base, rendered both ways."""

import shutil
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

import pytest

from roadstead.clock import Durations
from roadstead.service import STOPPING_BOUND
from roadstead.settings import PREFIX, Settings

from .manifests import objects, of_kind, pod_of

SERVICES = {entry.name for entry in entry_points(group="roadstead.services")}
KNOWN = {PREFIX + name.upper() for name in Settings.model_fields}


@pytest.fixture(scope="module", params=["kubectl", "own merge"])
def rendered(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    if request.param == "kubectl" and not shutil.which("kubectl"):
        pytest.skip("no kubectl on PATH; the other parameter checks the same objects")
    return objects(own_merge=request.param != "kubectl")


@pytest.fixture
def workloads(rendered: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {**of_kind(rendered, "Deployment"), **of_kind(rendered, "Job")}


def containers(workloads: dict[str, dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, item in workloads.items():
        for container in pod_of(item)["containers"]:
            yield name, container


def test_every_service_has_a_deployment_and_a_budget_for_its_pods(rendered: list[dict[str, Any]]) -> None:
    deployments, budgets = of_kind(rendered, "Deployment"), of_kind(rendered, "PodDisruptionBudget")
    assert set(deployments) == set(budgets) == SERVICES
    for name, deployment in deployments.items():
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        for selector in (deployment["spec"]["selector"], budgets[name]["spec"]["selector"]):
            assert selector["matchLabels"].items() <= labels.items()
        assert 0 < budgets[name]["spec"]["minAvailable"] < deployment["spec"]["replicas"]
        assert deployment["spec"]["template"]["spec"]["containers"][0]["args"] == [f"roadstead_{name}"]


def test_pods_run_with_the_least_rights(workloads: dict[str, dict[str, Any]]) -> None:
    for item in workloads.values():
        pod = pod_of(item)
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for name, container in containers(workloads):
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] is True, name
        assert context["allowPrivilegeEscalation"] is False, name
        assert context["capabilities"] == {"drop": ["ALL"]}, name
        assert {"requests", "limits"} <= set(container["resources"]), name
        assert "memory" in container["resources"]["limits"], name


def test_probes_ask_the_health_port(rendered: list[dict[str, Any]]) -> None:
    settings = next(iter(of_kind(rendered, "ConfigMap").values()))["data"]
    for name, container in containers(of_kind(rendered, "Deployment")):
        ports = {p["name"]: p["containerPort"] for p in container["ports"]}
        asked = {
            probe: container[probe]["httpGet"]
            for probe in ("startupProbe", "livenessProbe", "readinessProbe")
        }
        assert {a["port"] for a in asked.values()} == {"health"}, name
        assert asked["livenessProbe"]["path"] == asked["startupProbe"]["path"] == "/healthz"
        assert asked["readinessProbe"]["path"] == "/readyz"
        assert str(ports["health"]) == settings["ROADSTEAD_HEALTH_PORT"]
    for deployment in of_kind(rendered, "Deployment").values():
        assert (
            deployment["spec"]["template"]["metadata"]["annotations"]["prometheus.io/port"]
            == settings["ROADSTEAD_HEALTH_PORT"]
        )


def test_pods_have_time_to_drain(rendered: list[dict[str, Any]]) -> None:
    needed = Durations().drain + 2 * STOPPING_BOUND
    for deployment in of_kind(rendered, "Deployment").values():
        assert pod_of(deployment)["terminationGracePeriodSeconds"] > needed


def test_every_variable_is_a_setting_and_every_mount_a_volume(
    rendered: list[dict[str, Any]], workloads: dict[str, dict[str, Any]]
) -> None:
    config = {o["metadata"]["name"]: o["data"] for o in rendered if o["kind"] == "ConfigMap"}
    assert all(set(data) <= KNOWN for data in config.values())
    for item in workloads.values():
        pod = pod_of(item)
        volumes = {v["name"] for v in pod["volumes"]}
        for container in pod["containers"]:
            assert {e["name"] for e in container["env"]} <= KNOWN
            assert {m["name"] for m in container["volumeMounts"]} <= volumes
            assert {e["configMapRef"]["name"] for e in container.get("envFrom", ())} <= set(config)


def test_files_named_by_settings_are_mounted(rendered: list[dict[str, Any]]) -> None:
    settings = next(iter(of_kind(rendered, "ConfigMap").values()))["data"]
    wanted = {v for k, v in settings.items() if k.endswith("_FILE")}
    for name, deployment in of_kind(rendered, "Deployment").items():
        pod = pod_of(deployment)
        mounts = {m["name"]: m["mountPath"] for m in pod["containers"][0]["volumeMounts"]}
        files = {
            f"{mounts[v['name']]}/{item['path']}": item["key"]
            for v in pod["volumes"]
            if "secret" in v
            for item in v["secret"]["items"]
        }
        assert wanted == set(files), name
        assert f"{name}.nk" in files.values(), "the key of another service"
