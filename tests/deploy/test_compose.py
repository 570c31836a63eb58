"""The compose file and the image it builds."""

import re
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import yaml

from roadstead.clock import Durations
from roadstead.service import STOPPING_BOUND
from roadstead.settings import PREFIX, Settings

from .manifests import DEPLOY

SERVICES = {entry.name for entry in entry_points(group="roadstead.services")}
KNOWN = {PREFIX + name.upper() for name in Settings.model_fields}
OF_COMPOSE = {"ROADSTEAD_IMAGE"}  # read by compose itself


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def test_one_container_per_service_runs_its_module(compose: dict[str, Any]) -> None:
    running = {
        n: s["command"]
        for n, s in compose["services"].items()
        if s.get("command", [""])[0].startswith("roadstead_")
    }
    assert running == {name: [f"roadstead_{name}"] for name in SERVICES}


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_a_service_has_little_power_and_time_to_drain(compose: dict[str, Any], service: str) -> None:
    it = compose["services"][service]
    assert it["read_only"] is True
    assert it["cap_drop"] == ["ALL"]
    assert it["user"] not in ("root", "0", "0:0")
    assert it["volumes"] == ["keys:/var/lib/roadstead:ro"]
    assert int(it["stop_grace_period"].removesuffix("s")) > Durations().drain + 2 * STOPPING_BOUND
    assert it["depends_on"]["prepare"] == {"condition": "service_completed_successfully"}


def test_every_variable_of_the_files_is_a_setting() -> None:
    for path in (DEPLOY / "compose.yaml", DEPLOY / "Dockerfile", DEPLOY / "kubernetes/README.md"):
        used = set(re.findall(r"ROADSTEAD_[A-Z_]+", path.read_text()))
        assert used <= KNOWN | OF_COMPOSE, (path.name, used - KNOWN)


def test_ports_and_addresses_agree(compose: dict[str, Any]) -> None:
    service = compose["services"]["identity"]
    port = service["environment"]["ROADSTEAD_HEALTH_PORT"]
    assert f"127.0.0.1:{port}/readyz" in service["healthcheck"]["test"][-1]
    image = (DEPLOY / "Dockerfile").read_text()
    assert f"EXPOSE {port}" in image
    assert f"ROADSTEAD_HEALTH_PORT={port}" in image
    scraped = yaml.safe_load((DEPLOY / "otel/prometheus.yaml").read_text())["scrape_configs"][0][
        "dns_sd_configs"
    ][0]
    assert str(scraped["port"]) == port
    assert set(scraped["names"]) == SERVICES
    for url in (
        service["environment"]["ROADSTEAD_NATS_URL"],
        service["environment"]["ROADSTEAD_DATABASE_URL"],
    ):
        host = re.split(r"[@/]+", url.split("://", 1)[1])[url.count("@")].partition(":")[0]
        assert host in compose["services"], url
    collector = yaml.safe_load((DEPLOY / "otel/collector.yaml").read_text())
    assert collector["receivers"]["otlp"]["protocols"]["http"]["endpoint"].endswith(":4318")


def test_only_the_loopback_reaches_what_has_no_users(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert all(p.startswith("127.0.0.1:") for p in service.get("ports", ())), name
    assert compose["services"]["postgres"]["networks"] == ["inside"]
    assert compose["networks"]["inside"]["internal"] is True


def test_mounted_files_and_volumes_exist(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            there = (DEPLOY / source).exists() if source.startswith(".") else source in compose["volumes"]
            assert there, f"{name} mounts {source}"


def test_what_watches_is_left_out_unless_asked_for(compose: dict[str, Any]) -> None:
    watching = {n for n, s in compose["services"].items() if s.get("profiles") == ["observe"]}
    assert watching == {"collector", "jaeger", "prometheus", "grafana"}
    needed = {d for n, s in compose["services"].items() if n not in watching for d in s.get("depends_on", ())}
    assert not needed & watching


def test_the_image_is_built_of_what_is_there() -> None:
    lines = (DEPLOY / "Dockerfile").read_text()
    root = Path(DEPLOY.parent)
    for sources in re.findall(r"^COPY (?!--from)(.+) \S+$", lines, re.M):
        for source in sources.split():
            assert (root / source).exists(), source
    assert re.search(r"^USER 10001", lines, re.M)
