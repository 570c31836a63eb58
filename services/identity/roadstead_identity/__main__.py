"""The identity service: Regions, Identities and their records."""

from roadstead.assembly import Service
from roadstead_identity.identity import KIND as IDENTITY
from roadstead_identity.region import KIND as REGION
from roadstead_identity.requests import documents_of, install

SERVICE = Service(
    "identity",
    kinds=(REGION, IDENTITY),
    follows=("region", "identity"),
    setup=install,
    documents_of=documents_of,
)


def main() -> None:
    from roadstead.service import run

    run(SERVICE)


if __name__ == "__main__":
    main()
