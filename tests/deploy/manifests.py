"""The Kubernetes objects as they would be applied: by `kubectl kustomize`, or by a small merge of our own where there is none."""

import copy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).resolve().parent.parent.parent / "deploy"
BASE = DEPLOY / "kubernetes/base"

Object = dict[str, Any]


def objects(*, own_merge: bool = False) -> list[Object]:
    """Every rendered object.  own_merge: as on a machine without kubectl."""
    if not own_merge and shutil.which("kubectl"):
        made = subprocess.run(
            ["kubectl", "kustomize", str(BASE)], capture_output=True, text=True, check=True, timeout=60
        )
        return list(yaml.safe_load_all(made.stdout))
    kustomization = yaml.safe_load((BASE / "kustomization.yaml").read_text())
    patch = yaml.safe_load((BASE / "pod.yaml").read_text())
    found = [o for name in kustomization["resources"] for o in yaml.safe_load_all((BASE / name).read_text())]
    for item in found:
        if item["kind"] == "Deployment":
            item["spec"] = merged(patch["spec"], item["spec"])
        if item["kind"] != "Namespace":
            item["metadata"]["namespace"] = kustomization["namespace"]
    for generator in kustomization["configMapGenerator"]:
        data = dict(literal.split("=", 1) for literal in generator["literals"])
        found.append(
            {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": generator["name"]}, "data": data}
        )
    return found


def merged(under: Any, over: Any) -> Any:
    """Mappings merge, lists of named things merge by name, everything else of `over` wins."""
    if isinstance(under, dict) and isinstance(over, dict):
        return {
            k: merged(under[k], over[k]) if k in under and k in over else copy.deepcopy({**under, **over}[k])
            for k in {**under, **over}
        }
    if (
        isinstance(under, list)
        and isinstance(over, list)
        and all(isinstance(i, dict) and "name" in i for i in [*under, *over])
    ):
        by_name = {item["name"]: item for item in under}
        for item in over:
            by_name[item["name"]] = merged(by_name.get(item["name"], {}), item)
        return list(by_name.values())
    return copy.deepcopy(over)


def of_kind(found: list[Object], kind: str) -> dict[str, Object]:
    """Objects of one kind by name."""
    return {o["metadata"]["name"]: o for o in found if o["kind"] == kind}


def pod_of(item: Object) -> Object:
    """The pod's spec of a Deployment or Job."""
    pod: Object = item["spec"]["template"]["spec"]
    return pod
