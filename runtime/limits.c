// SPDX-License-Identifier: Apache-2.0
/* CPU and memory limits from annotations. */
#include <errno.h>
#include <inttypes.h>

#include "runtime/limits.h"

/* CFS: the period that the kubelet uses, and the least quota that the kernel takes (us). */
#define PERIOD_US 100000
#define QUOTA_MIN_US 1000
/* cpu.shares: the kernel's bounds; 1024 is one CPU's worth, runc turns it into v2's weight. */
#define SHARES_MIN 2
#define SHARES_MAX 262144

/* linux.resources.<group>.<key>; @absent where it is not there. */
static int present(const struct rewrite *rw, const char *group, const char *key, int64_t absent,
		   int64_t *ret, struct gs_err *err)
{
	struct js obj, v;
	int r;

	r = js_member(rw->spec->resources, group, &obj, err);
	if (r == 0 && !js_absent(obj) && !js_is(obj, JS_OBJECT))
		r = gs_err_set(err, EINVAL, "\"%s\" is not an object", group);
	if (r == 0)
		r = js_member(obj, key, &v, err);
	if (r < 0)
		return gs_err_prefix(err, "linux.resources");
	*ret = absent;
	if (!js_absent(v) && !js_int64(v, ret))
		return gs_err_set(err, EINVAL, "linux.resources.%s.%s is not a whole number", group,
				  key);
	return 0;
}

/* Sets the limit unless a tighter one is there; zero and less mean none. */
static void tighten(struct rewrite *rw, const char *group, const char *key, int64_t have,
		    int64_t want)
{
	if (have <= 0 || have > want)
		rewrite_limit(rw, group, key, want);
}

static int limit_cpu(struct rewrite *rw, int64_t milli, struct gs_err *err)
{
	int64_t period, quota, burst, shares, want;
	int r;

	r = present(rw, "cpu", "period", 0, &period, err);
	if (r == 0)
		r = present(rw, "cpu", "quota", 0, &quota, err);
	if (r == 0)
		r = present(rw, "cpu", "burst", 0, &burst, err);
	if (r == 0)
		r = present(rw, "cpu", "shares", 0, &shares, err);
	if (r < 0)
		return r;
	if (milli > INT64_MAX / 1000000)
		return gs_err_set(err, ERANGE, "vcpu of %" PRId64 " thousandths", milli);
	if (period <= 0 || period > 1000000) {
		period = PERIOD_US;
		rewrite_limit(rw, "cpu", "period", period);
	}
	want = milli * period / 1000;
	if (want < QUOTA_MIN_US)
		want = QUOTA_MIN_US;
	tighten(rw, "cpu", "quota", quota, want);
	if (burst > want) /* the kernel refuses a burst above the quota */
		rewrite_limit(rw, "cpu", "burst", want);
	want = milli * 1024 / 1000;
	if (want < SHARES_MIN)
		want = SHARES_MIN;
	if (want > SHARES_MAX)
		want = SHARES_MAX;
	if (shares != want)
		rewrite_limit(rw, "cpu", "shares", want);
	return 0;
}

/*
 * memory.swap is memory and swap together: where it is given, what it leaves for swap alone stays
 * the same. Without it the kubelet's and the kernel's default applies.
 */
static int limit_memory(struct rewrite *rw, int64_t want, struct gs_err *err)
{
	int64_t limit, both;
	int r;

	r = present(rw, "memory", "limit", 0, &limit, err);
	if (r == 0)
		r = present(rw, "memory", "swap", 0, &both, err);
	if (r < 0)
		return r;
	tighten(rw, "memory", "limit", limit, want);
	if (both > 0 && (limit <= 0 || limit > want)) {
		int64_t swap = limit > 0 && both > limit ? both - limit : 0;

		rewrite_limit(rw, "memory", "swap",
			      swap > INT64_MAX - want ? INT64_MAX : want + swap);
	}
	return 0;
}

int limits_apply(struct rewrite *rw, const struct request *req, struct gs_err *err)
{
	int r = 0;

	if (req->vcpu_milli)
		r = limit_cpu(rw, req->vcpu_milli, err);
	if (r == 0 && req->vmem_bytes)
		r = limit_memory(rw, req->vmem_bytes, err);
	return r;
}
