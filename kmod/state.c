// SPDX-License-Identifier: GPL-2.0-only
/* The states of a holding (design: "the states of a holding"). */
#include "state.h"

/* Where a return ends: the user goes on, and the card counts as in use, or as not watched. */
static enum gs_state back(unsigned int facts)
{
	return facts & GS_FACT_UNHOOKED ? GS_UNKNOWN : GS_ACTIVE;
}

static enum gs_state from_lent(enum gs_on on, unsigned int facts)
{
	/* Without a borrower there is nobody to wait for. */
	int alone = !(facts & (GS_FACT_BORROWERS | GS_FACT_FILES));

	switch (on) {
	case GS_ON_TOUCH:
		return alone ? GS_ACTIVE : GS_RETURNING;
	case GS_ON_WITHDRAW:
		return GS_RETURNING;
	case GS_ON_LOST:
		return alone ? GS_UNKNOWN : GS_RETURNING;
	default:
		return GS_LENT;
	}
}

static enum gs_state from_returning(enum gs_on on, unsigned int facts)
{
	int files = !!(facts & GS_FACT_FILES);

	switch (on) {
	case GS_ON_RELEASE:
	case GS_ON_SETTLED:
		return files ? GS_RETURNING : back(facts);
	case GS_ON_DRAINED:
	case GS_ON_LOST:
		/* With a hook lost the agent has nothing to wait for: the last close is the end. */
		return !files && (facts & GS_FACT_UNHOOKED) ? GS_UNKNOWN : GS_RETURNING;
	case GS_ON_HOLD_MAX:
		return files && !(facts & GS_FACT_UNHOOKED) ? GS_QUARANTINE : back(facts);
	default:
		return GS_RETURNING;
	}
}

enum gs_state gs_state_next(enum gs_state state, enum gs_on on, unsigned int facts)
{
	switch (state) {
	case GS_UNKNOWN:
		if (on != GS_ON_HOOKED || (facts & GS_FACT_UNHOOKED))
			return GS_UNKNOWN;
		return facts & GS_FACT_FILES ? GS_QUARANTINE : GS_ACTIVE;
	case GS_ACTIVE:
		if (on == GS_ON_LOST)
			return GS_UNKNOWN;
		return on == GS_ON_SILENCE ? GS_IDLE : GS_ACTIVE;
	case GS_IDLE:
		if (on == GS_ON_LOST)
			return GS_UNKNOWN;
		if (on == GS_ON_TOUCH || on == GS_ON_WITHDRAW)
			return GS_ACTIVE;
		return on == GS_ON_LEND ? GS_LENDING : GS_IDLE;
	case GS_LENDING:
		if (on == GS_ON_LOST)
			return GS_UNKNOWN;
		if (on == GS_ON_TOUCH || on == GS_ON_LOUD || on == GS_ON_WITHDRAW)
			return GS_ACTIVE;
		return on == GS_ON_QUIET ? GS_LENT : GS_LENDING;
	case GS_LENT:
		return from_lent(on, facts);
	case GS_RETURNING:
		return from_returning(on, facts);
	case GS_QUARANTINE:
		if (on == GS_ON_LOST)
			return GS_UNKNOWN;
		return on == GS_ON_DRAINED && !(facts & GS_FACT_FILES) ? back(facts) :
									 GS_QUARANTINE;
	default:
		return state;
	}
}

enum gs_cause gs_state_cause(enum gs_on on)
{
	switch (on) {
	case GS_ON_HOOKED:
		return GS_BY_HOOKED;
	case GS_ON_SILENCE:
		return GS_BY_SILENCE;
	case GS_ON_TOUCH:
	case GS_ON_LOUD:
		return GS_BY_TOUCH;
	case GS_ON_LEND:
	case GS_ON_QUIET:
		return GS_BY_LEND;
	case GS_ON_WITHDRAW:
		return GS_BY_WITHDRAW;
	case GS_ON_RELEASE:
		return GS_BY_RELEASE;
	case GS_ON_DRAINED:
		return GS_BY_DRAINED;
	case GS_ON_SETTLED:
		return GS_BY_SETTLED;
	case GS_ON_HOLD_MAX:
		return GS_BY_HOLD_MAX;
	case GS_ON_LOST:
		return GS_BY_LOST;
	default:
		return GS_BY_NONE;
	}
}
