"""The image of a server against the spec: the nine rows of behaviour.md section 9.1, top to bottom.

Everything comes from one fresh read.  R4'' is the only row that destroys anything, and no stored latch or observation leads
to it.
"""

from roadstead.reconcile.decision import Code, Decision, do, done, park, wait
from roadstead_compute.server import texts
from roadstead_compute.server.rules import Rule, Verb
from roadstead_compute.server.seen import ServerSeen


def decide_image(wanted: str | None, server: ServerSeen) -> Decision:
    """`wanted`: the spec's image id.  Stamps Active and Healthy in R3 alone (INV-122)."""
    if wanted is None:
        return park(Rule.R1, Code.IMAGE_MISSING, texts.IMAGE_MISSING)
    if server.image is None:
        return park(Rule.R2, Code.IMAGE_UNVERIFIABLE, texts.IMAGE_UNVERIFIABLE)
    if server.image == wanted:
        if server.rebuilding:
            return wait(Rule.R3, Code.BUSY, texts.REBUILDING, **texts.ACCEPTED)
        if server.status == "ERROR" and server.launched:
            return park(Rule.R3_ERROR, Code.REBUILD_CONVERGED_ERROR, texts.REBUILD_CONVERGED_ERROR)
        return done(Rule.R3_DONE)
    if not server.launched:
        return wait(Rule.R4_UNBORN, Code.BUSY, texts.BEFORE_FIRST_BOOT)
    if server.busy:
        return wait(Rule.R4_BUSY, Code.BUSY, texts.TASK_RUNNING)
    return do(Rule.R4_SUBMIT, Verb.REBUILD, "the server has another image than the spec and is quiet")
