# mypy: ignore-errors
# It runs where the original is installed and nothing of ours is, so its imports cannot be followed from here.
"""What runs in the original's own environment: `make_tables()` once, then `application()` in each worker of gunicorn.

Nothing of the product is imported here.  ORIGINAL_CONFIG names its octavia.conf, ORIGINAL_ROWS the rows that its database begins with as
JSON.  The network that it asks answers at once, as the one beside ours does.
"""

import json
import logging
import os

from octavia.common import utils
from octavia.network import data_models


class InstantNetwork:
    """Every subnet is in the one network that the environment names."""

    def get_subnet(self, subnet_id, context=None):
        return data_models.Subnet(
            id=subnet_id, network_id=os.environ["ORIGINAL_NETWORK"], cidr="192.0.2.0/24", ip_version=4
        )

    def get_network(self, network_id, context=None):
        subnets = [os.environ["ORIGINAL_SUBNET"]]
        return data_models.Network(id=network_id, subnets=subnets, port_security_enabled=True)

    def qos_enabled(self):
        return True


def application():
    """The WSGI application as octavia.conf has it."""
    from octavia.api import app

    network = InstantNetwork()
    utils.get_network_driver = lambda: network
    made = app.setup_app(argv=["octavia-api", "--config-file", os.environ["ORIGINAL_CONFIG"]])
    logging.disable(logging.INFO)
    return made


def make_tables():
    """All tables of the original's models, with the rows that its migrations put into them."""
    from octavia.common import config
    from octavia.db import api, base_models, models

    config.init(["--config-file", os.environ["ORIGINAL_CONFIG"]])
    tables = base_models.BASE.metadata.tables
    assert models.LoadBalancer.__tablename__ in tables
    engine = api.get_engine()
    base_models.BASE.metadata.create_all(engine)
    with open(os.environ["ORIGINAL_ROWS"]) as file:
        begin = json.load(file)
    with engine.begin() as connection:
        for name, rows in begin.items():
            connection.execute(tables[name].insert(), rows)


if __name__ == "__main__":
    make_tables()
