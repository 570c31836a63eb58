"""Region: one cloud that resources can live in."""

from roadstead.reconcile.kind import Kind
from roadstead.region import RegionSpec
from roadstead_identity.region.decide import RegionRule, decide
from roadstead_identity.region.model import RegionSeen, RegionStatus
from roadstead_identity.region.observe import observe
from roadstead_identity.region.validate import validate

KIND: Kind[RegionSpec, RegionStatus, RegionSeen] = Kind(
    name="region",
    service="identity",
    spec=RegionSpec,
    status=RegionStatus,
    observe=observe,
    decide=decide,
    act={},
    rules=RegionRule,
    validate=validate,
    project_scoped=False,
)
