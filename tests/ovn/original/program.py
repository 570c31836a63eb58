# mypy: ignore-errors
# It runs where the original is installed and nothing of ours is, so its imports cannot be followed from here.
"""The original provider as a process: one JSON object a line in, one out.  Nothing of the product is imported here.

    program.py SETTINGS.json

Settings: nb, sb (lists of connections), agent (whether its driver agent watches as well), and either neutron (options of the section
[neutron]) or network: {"ports": ..., "subnet": ..., "network": ...}, a network service without cost.

Requests: {"do": "know", "tree": LOAD BALANCER} what the API would answer from now on; {"do": "call", "method", "class", "models", "keywords"}
a call of the driver with data models made from dicts; {"do": "sync"} its repair tool; {"do": "statuses"} messages since the last request.
Answers: {"seconds", "statuses", "error"}; a call is over when its queue is empty.
"""

import copy
import json
import os
import sys
import threading
import time
import warnings

warnings.filterwarnings("ignore")
OUT = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # whatever prints is no answer

NESTED = {
    "listeners": "Listener",
    "pools": "Pool",
    "default_pool": "Pool",
    "members": "Member",
    "healthmonitor": "HealthMonitor",
}
IDS = {
    "LoadBalancer": "loadbalancer_id",
    "Listener": "listener_id",
    "Pool": "pool_id",
    "Member": "member_id",
    "HealthMonitor": "healthmonitor_id",
}


class Thing(dict):
    """An object of a service: items and attributes."""

    __getattr__ = dict.__getitem__


def model(kind, values, deep=True):
    """A data model of octavia-lib; keys that it does not know are left out.  deep: nested objects are models as well, as in a call."""
    from octavia_lib.api.drivers import data_models

    cls = getattr(data_models, kind)
    given = {}
    for key, value in values.items():
        inner = NESTED.get(key)
        if not deep:
            inner = None
        if inner and isinstance(value, list):
            value = [model(inner, item) for item in value]
        elif inner and isinstance(value, dict):
            value = model(inner, value)
        given[key] = value
    made = cls()
    for key, value in given.items():
        if hasattr(made, key):
            setattr(made, key, value)
    return made


class Api:
    """What stands for Octavia's API: takes status messages, and answers what was last made known of each object."""

    def __init__(self):
        self.statuses = []
        self.known = {kind: {} for kind in IDS}
        self.changed = threading.Condition()

    def know(self, tree):
        lb = tree["loadbalancer_id"]
        self.known["LoadBalancer"][lb] = tree
        for listener in tree.get("listeners") or ():
            self.known["Listener"][listener["listener_id"]] = {**listener, "loadbalancer_id": lb}
        for pool in tree.get("pools") or ():
            self.known["Pool"][pool["pool_id"]] = {**pool, "loadbalancer_id": lb}
            for member in pool.get("members") or ():
                self.known["Member"][member["member_id"]] = {**member, "pool_id": pool["pool_id"]}

    def update_loadbalancer_status(self, status):
        with self.changed:
            self.statuses.append(copy.deepcopy(status))
            self.changed.notify_all()

    def _get(self, kind, identifier):
        found = self.known[kind].get(identifier)
        return None if found is None else model(kind, found, deep=False)

    def get_loadbalancer(self, identifier):
        return self._get("LoadBalancer", identifier)

    def get_listener(self, identifier):
        return self._get("Listener", identifier)

    def get_pool(self, identifier):
        return self._get("Pool", identifier)

    def get_member(self, identifier):
        return self._get("Member", identifier)

    def load_balancers(self, **_):
        """What its repair tool asks of the API's client."""
        return [
            Thing(id=identifier, name=tree.get("name", ""))
            for identifier, tree in self.known["LoadBalancer"].items()
        ]


class FreeNetwork:
    """A network service that costs nothing: one network, one subnet, any port."""

    def __init__(self, network, subnet, cidr):
        self.network, self.subnet_, self.cidr = network, subnet, cidr

    def get_network(self, network_id):
        return Thing(id=network_id, name="bench", provider_physical_network=None)

    def get_subnet(self, subnet_id):
        version = 6 if ":" in self.cidr else 4
        return Thing(
            id=subnet_id, network_id=self.network, cidr=self.cidr, gateway_ip=None, ip_version=version
        )

    def lend(self, tree):
        """The port of the load balancer that is about to be made is the only one that is looked for."""
        fixed = [{"subnet_id": self.subnet_, "ip_address": tree["vip_address"]}]
        self.port = Thing(
            id=tree["vip_port_id"], name=f"ovn-lb-vip-{tree['loadbalancer_id']}", network_id=self.network,
            fixed_ips=fixed, device_owner="ovn-lb:vip", device_id="", project_id="",
        )  # fmt: skip

    def get_port(self, _):
        return self.port

    def ports(self, **_):
        return iter([self.port])

    def find_port(self, *_, **__):
        return self.port

    def ips(self, **_):
        return iter(())

    def delete_port(self, *_, **__):
        return None


class Provider:
    def __init__(self, settings):
        from oslo_config import cfg
        from oslo_log import log  # noqa: F401 - registers options
        from ovn_octavia_provider import agent, driver, helper
        from ovn_octavia_provider.common import clients
        from ovn_octavia_provider.common import config as ovn_config

        ovn_config.register_opts()
        lines = ["[ovn]"]
        lines += [f"ovn_{side}_connection = {','.join(settings[side])}" for side in ("nb", "sb")]
        lines += ["[neutron]", *(f"{k} = {v}" for k, v in settings.get("neutron", {}).items())]
        path = settings["folder"] + "/original.conf"
        with open(path, "w") as file:
            file.write("\n".join(lines) + "\n")
        cfg.CONF(["--config-file", path], project="original", default_config_files=[path])
        self.api = Api()
        helper.o_driver_lib.DriverLibrary = lambda *_, **__: self.api
        clients.get_octavia_client = lambda: self.api
        self.network = FreeNetwork(**settings["network"]) if "network" in settings else None
        if self.network:
            clients.get_neutron_client = lambda: self.network
        # Each attempt is still made; the naps between them are left out.
        for name in ("delete_port", "_update_status_to_octavia"):
            getattr(helper.OvnProviderHelper, name).retry.sleep = lambda _: None
        self.helpers = []
        mine = self.helpers

        class Followed(helper.OvnProviderHelper):
            def __init__(self, *arguments, **keywords):
                super().__init__(*arguments, **keywords)
                self._lb_request_func_maps["tell"] = lambda event: event.set()
                mine.append(self)

        helper.OvnProviderHelper = Followed
        self.driver = driver.OvnProviderDriver()
        if settings.get("agent"):
            threading.Thread(target=agent.OvnProviderAgent, args=(threading.Event(),), daemon=True).start()
            time.sleep(2.0)

    def settle(self):
        """Until what was asked before is done; twice, as a request may make further ones."""
        for helper in list(self.helpers) * 2:
            event = threading.Event()
            helper.add_request({"type": "tell", "info": event})
            if not event.wait(1800):
                raise RuntimeError("its queue is stuck")

    def answer(self, request):
        self.api.statuses.clear()
        error = None
        start = time.perf_counter()
        try:
            self.act(request)
            self.settle()
        except Exception as problem:  # noqa: BLE001 - the caller is told
            error = f"{type(problem).__name__}: {problem}"
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "statuses": copy.deepcopy(self.api.statuses), "error": error}

    def act(self, request):
        what = request["do"]
        if what == "know":
            self.api.know(request["tree"])
            if self.network:
                self.network.lend(request["tree"])
        elif what == "sync":
            self.driver.do_sync(provider="ovn")
        elif what == "batch":
            members = [model("Member", values) for values in request["members"]]
            self.driver.member_batch_update(request["pool_id"], members)
        elif what == "call":
            models = [model(request["class"], values) for values in request["models"]]
            getattr(self.driver, request["method"])(*models, **request.get("keywords", {}))
        elif what != "statuses":
            raise ValueError(f"unknown request {what}")


def main():
    with open(sys.argv[1]) as file:
        provider = Provider(json.load(file))
    print(json.dumps({"ready": True}), file=OUT, flush=True)
    for line in sys.stdin:
        print(json.dumps(provider.answer(json.loads(line))), file=OUT, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
