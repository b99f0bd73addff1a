// SPDX-License-Identifier: Apache-2.0
/* Merging sources into a target: what is added once, what conflicts, what stays behind. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/xalloc.h"
#include "runtime/inject.h"
#include "runtime/next.h"
#include "tests/unit/specs.h"
#include "tests/unit/tmpdir.h"

#define RUNC "/usr/sbin/runc"
#define CRUN "/usr/bin/crun"
#define ACME_RUNTIME "/opt/bin/acme-runtime"

static struct gs_catalogue cat;

static int setup(void **state)
{
	*state = tmpdir_make();
	catalogue_make(&cat, *state);
	return 0;
}

static int teardown(void **state)
{
	gs_catalogue_free(&cat);
	tmpdir_remove(*state);
	return 0;
}

/* A spec of these parts, each what stands between its brackets. */
#define SPEC(env, mounts, hooks, devices, rules)                                     \
	"{\"process\":{\"env\":[" env "]},\"mounts\":[" mounts "],\"hooks\":{" hooks \
	"},\"linux\":{\"devices\":[" devices "],\"resources\":{\"devices\":[" rules "]}}}"

#define DEV(path, major, minor) \
	"{\"path\":\"" path "\",\"type\":\"c\",\"major\":" #major ",\"minor\":" #minor "}"
#define RULE(major, minor, access)                                              \
	"{\"allow\":true,\"type\":\"c\",\"major\":" #major ",\"minor\":" #minor \
	",\"access\":\"" access "\"}"
#define DENY_ALL "{\"allow\":false,\"access\":\"rwm\"}"
#define ALLOW_ALL "{\"allow\":true,\"access\":\"rwm\"}"
#define BIND(to, from) "{\"destination\":\"" to "\",\"type\":\"bind\",\"source\":\"" from "\"}"

#define ZERO DEV("/dev/zero", 1, 5)
#define FULL DEV("/dev/full", 1, 7)
#define RANDOM DEV("/dev/random", 1, 8)
#define TTY DEV("/dev/tty", 5, 0)

struct given {
	struct source v[3];
	size_t n;
};

/* The sources "one", "two", "three" out of up to three specs. */
static void give(struct given *given, const char *const specs[3])
{
	static const char *const names[] = { "one", "two", "three" };

	*given = (struct given){ 0 };
	for (; given->n < 3 && specs[given->n]; given->n++)
		source_make(&given->v[given->n], names[given->n], specs[given->n], &cat);
	/* a source's slice points at its spec, so not before they stand where they stay */
	for (size_t i = 0; i < given->n; i++)
		given->v[i].slice.spec = &given->v[i].spec;
}

static void take(struct given *given)
{
	for (size_t i = 0; i < given->n; i++)
		source_free(&given->v[i]);
}

/* As struct inject has it. */
static bool strict;

/* Injects into @target; gives the new text, or NULL with an error. The caller frees. */
static char *merge(const char *target, const struct given *given, const char *next,
		   struct granted_list *ret_granted, int *ret, struct gs_err *err)
{
	cleanup_rewrite struct rewrite rw;
	cleanup_slice struct slice own = { 0 };
	cleanup_spec struct spec spec;
	struct inject in = { .cat = &cat,
			     .own = &own,
			     .sources = given->v,
			     .n_sources = given->n,
			     .next = next,
			     .strict = strict };

	spec_make(&spec, target);
	spec.no_rules_allow_all = next_allows_without_rules(next);
	slice_find(&spec, &cat, &own);
	rewrite_begin(&rw, &spec);
	*ret_granted = (struct granted_list){ 0 };
	*ret = inject(&rw, &in, ret_granted, err);
	return *ret < 0 ? NULL : rewrite_make(&rw);
}

struct row {
	const char *next, *target, *sources[3], *want;
};

static void expect(const struct row *row)
{
	struct granted_list granted;
	struct gs_err err = { 0 };
	struct given given;
	char *got, *again;
	int r;

	give(&given, row->sources);
	got = merge(row->target, &given, row->next, &granted, &r, &err);
	free(granted.v);
	if (!got)
		fail_msg("%s: %s", row->target, err.msg);
	if (strcmp(got, row->want) != 0)
		fail_msg("%s with %s %s\nbecame %s\nnot    %s", row->target, row->sources[0],
			 row->sources[1] ? row->sources[1] : "", got, row->want);
	/* what we made ourselves is left as it is */
	again = merge(got, &given, row->next, &granted, &r, &err);
	free(granted.v);
	if (!again || strcmp(again, got) != 0)
		fail_msg("a second time %s\nbecame %s", got, again ? again : err.msg);
	free(got);
	free(again);
	take(&given);
}

static void expect_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		expect(&rows[i]);
}

static void devices_and_rules(void **state)
{
	static const struct row rows[] = {
		/* the plain case */
		{ RUNC,
		  SPEC("", "", "", "", DENY_ALL),
		  { SPEC("", "", "", ZERO, DENY_ALL "," RULE(1, 5, "rw")) },
		  SPEC("", "", "", ZERO, DENY_ALL "," RULE(1, 5, "rw")) },
		/* a source's wildcard is narrowed */
		{ RUNC,
		  SPEC("", "", "", "", DENY_ALL),
		  { SPEC("", "", "", ZERO "," RANDOM,
			 "{\"allow\":true,\"type\":\"c\",\"major\":1,\"access\":\"rwm\"}") },
		  SPEC("", "", "", ZERO "," RANDOM,
		       DENY_ALL "," RULE(1, 5, "rwm") "," RULE(1, 8, "rwm")) },
		/* there already: once */
		{ RUNC,
		  SPEC("", "", "", ZERO, DENY_ALL "," RULE(1, 5, "rwm")),
		  { SPEC("", "", "", ZERO, RULE(1, 5, "rw")) },
		  SPEC("", "", "", ZERO, DENY_ALL "," RULE(1, 5, "rwm")) },
		/* there, but not allowed, or not all of it */
		{ RUNC,
		  SPEC("", "", "", ZERO, DENY_ALL "," RULE(1, 5, "r")),
		  { SPEC("", "", "", ZERO, RULE(1, 5, "rw")) },
		  SPEC("", "", "", ZERO, DENY_ALL "," RULE(1, 5, "r") "," RULE(1, 5, "rw")) },
		/* behind the target's own deny */
		{ RUNC,
		  SPEC("", "", "", "",
		       RULE(1, 5, "rw") ","
					"{\"allow\":false,\"type\":\"c\","
					"\"major\":1,\"access\":\"rwm\"}"),
		  { SPEC("", "", "", ZERO, RULE(1, 5, "rw")) },
		  SPEC("", "", "", ZERO,
		       RULE(1, 5, "rw") ",{\"allow\":false,\"type\":\"c\",\"major\":1,"
					"\"access\":\"rwm\"}," RULE(1, 5, "rw")) },
		/* a privileged target has the right, not the node */
		{ RUNC,
		  SPEC("", "", "", "", ALLOW_ALL),
		  { SPEC("", "", "", ZERO, RULE(1, 5, "rw")) },
		  SPEC("", "", "", ZERO, ALLOW_ALL) },
		/* two sources with the same node: their rights add up */
		{ RUNC,
		  SPEC("", "", "", "", DENY_ALL),
		  { SPEC("", "", "", ZERO, RULE(1, 5, "r")),
		    SPEC("", "", "", ZERO "," FULL, RULE(1, 5, "w") "," RULE(1, 7, "rw")) },
		  SPEC("", "", "", ZERO "," FULL,
		       DENY_ALL "," RULE(1, 5, "rw") "," RULE(1, 7, "rw")) },
		/* a node that its own rules do not allow gives no right and no rule */
		{ RUNC,
		  SPEC("", "", "", "", DENY_ALL),
		  { SPEC("", "", "", ZERO, DENY_ALL) },
		  SPEC("", "", "", ZERO, DENY_ALL) },
		/* no list at all: runc allows the default devices, crun every one */
		{ RUNC,
		  "{\"process\":{},\"linux\":{}}",
		  { SPEC("", "", "", ZERO, RULE(1, 5, "rw")) },
		  "{\"process\":{},\"linux\":{\"devices\":[" ZERO
		  "],\"resources\":{\"devices\":[" RULE(1, 5, "rw") "]}}}" },
		{ CRUN,
		  "{\"process\":{},\"linux\":{}}",
		  { SPEC("", "", "", ZERO, RULE(1, 5, "rw")) },
		  "{\"process\":{},\"linux\":{\"devices\":[" ZERO "]}}" },
		{ CRUN,
		  SPEC("", "", "", "", DENY_ALL),
		  { SPEC("", "", "", ZERO, RULE(1, 5, "rw")) },
		  SPEC("", "", "", ZERO, DENY_ALL "," RULE(1, 5, "rw")) },
		/* a privileged source with one card of the maker: that must be it */
		{ RUNC,
		  SPEC("", "", "", "", DENY_ALL),
		  { SPEC("", "", "", ZERO "," RANDOM, ALLOW_ALL) },
		  SPEC("", "", "", ZERO "," RANDOM,
		       DENY_ALL "," RULE(1, 5, "rwm") "," RULE(1, 8, "rwm")) },
	};

	expect_rows(rows, GS_ARRAY_SIZE(rows));
}

static void environment(void **state)
{
#define E(env) SPEC(env, "", "", "", "")
#define CARD(env) SPEC(env, "", "", ZERO, RULE(1, 5, "rw"))
#define GOT(env) SPEC(env, "", "", ZERO, RULE(1, 5, "rw"))
	static const struct row rows[] = {
		/* secrets and what is nobody's stay behind */
		{ RUNC,
		  E("\"PATH=/bin\""),
		  { CARD("\"TOKEN=x\",\"LD_PRELOAD=/x\",\"PATH=/y\"") },
		  GOT("\"PATH=/bin\"") },
		/* exactly one entry, at the first place; foreign repeats stay */
		{ RUNC,
		  E("\"ACME_VISIBLE=all\",\"X=1\",\"ACME_VISIBLE=void\",\"X=2\""),
		  { CARD("\"ACME_VISIBLE=card-1\"") },
		  GOT("\"ACME_VISIBLE=card-1\",\"X=1\",\"X=2\"") },
		{ RUNC,
		  E(""),
		  { CARD("\"ACME_VISIBLE=all\",\"ACME_VISIBLE=card-1\"") },
		  GOT("\"ACME_VISIBLE=card-1\"") },
		{ RUNC,
		  E("\"A=\\u0041\""),
		  { CARD("\"ACME_MODE=a\\\"\\\\\\n\xc3\xa9\"") },
		  GOT("\"A=\\u0041\",\"ACME_MODE=a\\\"\\\\\\u000a\xc3\xa9\"") },
		{ RUNC,
		  E("\"ACME_MODE=fast\",\"ACME_MODE=slow\""),
		  { CARD("") },
		  GOT("\"ACME_MODE=slow\"") },
		{ RUNC,
		  E("\"ACME_CAPS=all\""),
		  { CARD("\"ACME_CAPS=a,b\"") },
		  GOT("\"ACME_CAPS=a,b\"") },
		/* CDI has expanded the selector: an image's "all" must not bring all cards back */
		{ RUNC, E("\"ACME_VISIBLE=all\""), { CARD("") }, GOT("\"ACME_VISIBLE=void\"") },
		{ RUNC,
		  E("\"ACME_VISIBLE=all\""),
		  { CARD("\"ACME_VISIBLE=void\"") },
		  GOT("\"ACME_VISIBLE=void\"") },
		{ RUNC,
		  E("\"ACME_VISIBLE=all\""),
		  { CARD("\"ACME_VISIBLE=\"") },
		  GOT("\"ACME_VISIBLE=\"") },
		{ RUNC, E(""), { CARD("") }, GOT("") },
		{ ACME_RUNTIME, E(""), { CARD("") }, GOT("\"ACME_VISIBLE=void\"") },
		/* a maker of whom the source has no card: the target's own variables stay */
		{ RUNC,
		  E("\"ZETA_VISIBLE=all\""),
		  { CARD("\"ZETA_VISIBLE=\"") },
		  GOT("\"ZETA_VISIBLE=all\"") },
		/* a maker without a word for none: the variable goes */
		{ RUNC,
		  E("\"ZETA_VISIBLE=all\",\"B=1\""),
		  { SPEC("", "", "", TTY, RULE(5, 0, "rw")) },
		  SPEC("\"B=1\"", "", "", TTY, RULE(5, 0, "rw")) },
		/* several sources: lists are joined without repeats, none gives way, all wins */
		{ RUNC,
		  E("\"ACME_VISIBLE=all\""),
		  { CARD("\"ACME_VISIBLE=a,b\",\"ACME_CAPS=p\""),
		    CARD("\"ACME_VISIBLE=b,c\",\"ACME_CAPS=q,p\"") },
		  GOT("\"ACME_VISIBLE=a,b,c\",\"ACME_CAPS=p,q\"") },
		{ RUNC,
		  E(""),
		  { CARD("\"ACME_VISIBLE=void\""), CARD("\"ACME_VISIBLE=b\""),
		    CARD("\"ACME_VISIBLE=none\"") },
		  GOT("\"ACME_VISIBLE=b\"") },
		{ RUNC,
		  E(""),
		  { CARD("\"ACME_VISIBLE=a\""), CARD("\"ACME_VISIBLE=all\"") },
		  GOT("\"ACME_VISIBLE=all\"") },
		{ RUNC,
		  E(""),
		  { CARD("\"ACME_VISIBLE=none\""), CARD("\"ACME_VISIBLE=void\"") },
		  GOT("\"ACME_VISIBLE=none\"") },
		{ RUNC,
		  E("\"ACME_MODE=x\""),
		  { CARD("\"ACME_MODE=y\""), CARD("\"ACME_MODE=y\"") },
		  GOT("\"ACME_MODE=y\"") },
		/* positions mean something within one source only */
		{ RUNC,
		  E("\"ACME_ORDER=9\""),
		  { CARD("\"ACME_ORDER=0\"") },
		  GOT("\"ACME_ORDER=0\"") },
		{ RUNC,
		  E("\"ACME_ORDER=9\""),
		  { CARD("\"ACME_ORDER=0\""), CARD("\"ACME_ORDER=1\"") },
		  GOT("") },
		{ RUNC, E(""), { CARD("\"ACME_ORDER=0\""), CARD("") }, GOT("") },
		/* a spec without an environment gets one */
		{ RUNC,
		  "{\"process\":{},\"linux\":{\"devices\":[],\"resources\":{\"devices\":[" RULE(
			  1, 5, "rw") "]}}}",
		  { CARD("\"ACME_MODE=y\"") },
		  "{\"process\":{\"env\":[\"ACME_MODE=y\"]},\"linux\":{\"devices\":[" ZERO
		  "],\"resources\":{\"devices\":[" RULE(1, 5, "rw") "]}}}" },
	};

	expect_rows(rows, GS_ARRAY_SIZE(rows));
#undef E
#undef CARD
#undef GOT
}

#define LIB BIND("/usr/lib/libacme.so", "/usr/lib/libacme.so")
#define HOOK(path, args) "{\"path\":\"" path "\",\"args\":[" args "]}"
#define CDI(args) HOOK("/usr/bin/acme-cdi-hook", args)
#define SH HOOK("/bin/sh", "")

static void mounts_and_hooks(void **state)
{
	static const struct row rows[] = {
		{ RUNC,
		  SPEC("", BIND("/data", "/srv"), "", "", ""),
		  { SPEC("", BIND("/secret", "/s") "," LIB, "", ZERO, "") },
		  SPEC("", BIND("/data", "/srv") "," LIB, "", ZERO, "") },
		{ RUNC,
		  SPEC("", LIB, "", "", ""),
		  { SPEC("", LIB, "", ZERO, "") },
		  SPEC("", LIB, "", ZERO, "") },
		{ RUNC,
		  SPEC("", "", "", "", ""),
		  { SPEC("", LIB, "", ZERO, ""), SPEC("", LIB, "", ZERO, "") },
		  SPEC("", LIB, "", ZERO, "") },
		/* hooks: known ones by path and arguments, once; the next runtime's own not */
		{ RUNC,
		  SPEC("", "", "\"createContainer\":[]", "", ""),
		  { SPEC("", "",
			 "\"createContainer\":[" SH "," CDI("\"a\"") "," CDI("\"b\"") "," CDI(
				 "\"\\u0061\"") "," CDI("\"b\",\"c\"") "]",
			 ZERO, "") },
		  SPEC("", "",
		       "\"createContainer\":[" CDI("\"a\"") "," CDI("\"b\"") "," CDI(
			       "\"b\",\"c\"") "]",
		       ZERO, "") },
		{ RUNC,
		  SPEC("", "", "\"poststop\":[" HOOK("/usr/bin/acme-cdi-hook", "\"a\"") "]", "",
		       ""),
		  { SPEC("", "", "\"poststop\":[" HOOK("/usr/bin/acme-cdi-hook", "\"a\"") "]", ZERO,
			 "") },
		  SPEC("", "", "\"poststop\":[" HOOK("/usr/bin/acme-cdi-hook", "\"a\"") "]", ZERO,
		       "") },
		{ RUNC,
		  SPEC("", "", "\"prestart\":[]", "", ""),
		  { SPEC("", "", "\"prestart\":[" HOOK("/usr/bin/acme-next-hook", "\"p\"") "]",
			 ZERO, "") },
		  SPEC("", "", "\"prestart\":[" HOOK("/usr/bin/acme-next-hook", "\"p\"") "]", ZERO,
		       "") },
		{ ACME_RUNTIME,
		  SPEC("\"ACME_VISIBLE=void\"", "", "\"prestart\":[]", "", ""),
		  { SPEC("", "", "\"prestart\":[" HOOK("/usr/bin/acme-next-hook", "\"p\"") "]",
			 ZERO, "") },
		  SPEC("\"ACME_VISIBLE=void\"", "", "\"prestart\":[]", ZERO, "") },
		/* files of a maker of whom the source has no card stay behind */
		{ RUNC,
		  SPEC("", "", "", "", ""),
		  { SPEC("", LIB, "", TTY, RULE(5, 0, "rw")) },
		  SPEC("", "", "", TTY, RULE(5, 0, "rw")) },
		/* cards selected by mounts */
		{ ACME_RUNTIME,
		  SPEC("", "", "", "", ""),
		  { SPEC("\"ACME_VISIBLE=/var/run/acme-devices\"",
			 BIND("/var/run/acme-devices/card-1", "/dev/null"), "", "", "") },
		  SPEC("\"ACME_VISIBLE=/var/run/acme-devices\"",
		       BIND("/var/run/acme-devices/card-1", "/dev/null"), "", "", "") },
	};

	expect_rows(rows, GS_ARRAY_SIZE(rows));
}

/* The next runtime injects what is selected: the selector goes, the cards come from there. */
static void selected_by_the_next_runtime(void **state)
{
	static const struct row rows[] = {
		{ ACME_RUNTIME,
		  SPEC("\"ACME_VISIBLE=all\"", "", "", "", ""),
		  { SPEC("\"ACME_VISIBLE=card-1\"", "", "", "", "") },
		  SPEC("\"ACME_VISIBLE=card-1\"", "", "", "", "") },
		/* a privileged source lists every card and was given one */
		{ ACME_RUNTIME,
		  SPEC("", "", "", "", ""),
		  { SPEC("\"ACME_VISIBLE=card-1\"", "", "", ZERO "," FULL, ALLOW_ALL) },
		  SPEC("\"ACME_VISIBLE=card-1\"", "", "", "", "") },
	};

	expect_rows(rows, GS_ARRAY_SIZE(rows));
}

#define OWN(env) SPEC(env, "", "", "", "")
#define CARD_1 SPEC("\"ACME_VISIBLE=card-1\"", "", "", ZERO, "")
#define CARD_9 BIND("/var/run/acme-devices/card-9", "/dev/null")

/* A target may have cards of its own, which it selects by name; "all" is an image's. */
static void what_the_target_selects_itself(void **state)
{
	static const struct row rows[] = {
		{ RUNC,
		  OWN("\"ACME_VISIBLE=mine\""),
		  { CARD_1 },
		  SPEC("\"ACME_VISIBLE=card-1,mine\"", "", "", ZERO, "") },
		{ RUNC,
		  OWN("\"ACME_VISIBLE=mine,card-1\""),
		  { CARD_1 },
		  SPEC("\"ACME_VISIBLE=card-1,mine\"", "", "", ZERO, "") },
		{ ACME_RUNTIME,
		  OWN("\"ACME_VISIBLE=card-1\""),
		  { CARD_1 },
		  SPEC("\"ACME_VISIBLE=card-1\"", "", "", ZERO, "") },
		{ ACME_RUNTIME,
		  OWN("\"ACME_VISIBLE=none\""),
		  { CARD_1 },
		  SPEC("\"ACME_VISIBLE=card-1\"", "", "", ZERO, "") },
	};

	expect_rows(rows, GS_ARRAY_SIZE(rows));
}

/* One that is fenced, or a borrower, has nothing but its sources' cards. */
static void strict_targets(void **state)
{
	static const struct row rows[] = {
		{ RUNC,
		  OWN("\"ACME_VISIBLE=mine\",\"A=1\""),
		  { CARD_1 },
		  SPEC("\"ACME_VISIBLE=card-1\",\"A=1\"", "", "", ZERO, "") },
		{ ACME_RUNTIME,
		  OWN("\"ACME_VISIBLE=mine\""),
		  { CARD_1 },
		  SPEC("\"ACME_VISIBLE=card-1\"", "", "", ZERO, "") },
		/* of a maker of whom no source has a card: by variable and by mount */
		{ ACME_RUNTIME,
		  SPEC("\"ACME_VISIBLE=all\"", CARD_9 "," BIND("/data", "/srv"), "", "", ""),
		  { SPEC("", "", "", TTY, "") },
		  SPEC("\"ACME_VISIBLE=void\"", BIND("/data", "/srv"), "", TTY, "") },
		/* where nobody acts on it, it is a word */
		{ RUNC,
		  OWN("\"ACME_VISIBLE=all\""),
		  { SPEC("", "", "", TTY, "") },
		  SPEC("\"ACME_VISIBLE=all\"", "", "", TTY, "") },
	};

	strict = true;
	expect_rows(rows, GS_ARRAY_SIZE(rows));
	strict = false;
}

/* A scanned spec holds what the next runtime had injected; it will do so again by itself. */
static void scanned_sources(void **state)
{
	static const char *const specs[3] = { SPEC(
		"\"ACME_VISIBLE=card-1\"", LIB,
		"\"createContainer\":[" HOOK("/usr/bin/acme-cdi-hook", "\"a\"") "]", "", "") };
	struct granted_list granted;
	struct gs_err err = { 0 };
	struct given given;
	char *got;
	int r;

	give(&given, specs);
	given.v[0].scanned = true;
	got = merge(SPEC("", "", "", "", ""), &given, ACME_RUNTIME, &granted, &r, &err);
	assert_non_null(got);
	assert_string_equal(got, SPEC("\"ACME_VISIBLE=card-1\"", "", "", "", ""));
	free(got);
	got = merge(SPEC("", "", "", "", ""), &given, RUNC, &granted, &r, &err);
	assert_non_null(got);
	assert_non_null(strstr(got, "libacme"));
	assert_non_null(strstr(got, "acme-cdi-hook"));
	free(got);
	take(&given);
}

static void refuses(void **state)
{
	static const struct {
		const char *next, *target, *sources[3];
		int code;
		const char *words[3];
	} rows[] = {
		{ RUNC,
		  SPEC("", "", "", "", ""),
		  { SPEC("", "", "", "", "") },
		  ENODEV,
		  { "source ns/pod/one has no devices" } },
		{ RUNC,
		  SPEC("", "", "", "", ""),
		  { SPEC("\"ACME_VISIBLE=void\"", "", "", "", "") },
		  ENODEV,
		  { "ns/pod/one" } },
		{ RUNC,
		  SPEC("", "", "", "", ""),
		  { SPEC("", LIB, "", "", "") },
		  ENODEV,
		  { "ns/pod/one" } },
		{ RUNC,
		  SPEC("", "", "", "", ""),
		  { SPEC("", "", "", ZERO, ""), SPEC("\"ACME_VISIBLE=\"", "", "", "", "") },
		  ENODEV,
		  { "ns/pod/two" } },
		/* one path, two devices */
		{ RUNC,
		  SPEC("", "", "", DEV("/dev/zero", 9, 9), ""),
		  { SPEC("", "", "", ZERO, "") },
		  EEXIST,
		  { "/dev/zero is c 1:5 in source ns/pod/one", "c 9:9", "own spec" } },
		{ RUNC,
		  SPEC("", "", "",
		       "{\"path\":\"/dev/zero\",\"type\":\"b\",\"major\":1,\"minor\":5}", ""),
		  { SPEC("", "", "", ZERO, "") },
		  EEXIST,
		  { "/dev/zero", "b 1:5" } },
		{ RUNC,
		  SPEC("", "", "", "", ""),
		  { SPEC("", "", "", ZERO, ""), SPEC("", "", "", DEV("/dev/zero", 1, 6), "") },
		  EEXIST,
		  { "/dev/zero is c 1:6 in source ns/pod/two", "c 1:5 in ns/pod/one" } },
		/* the host's node is another one by now */
		{ RUNC,
		  SPEC("", "", "", "", ""),
		  { SPEC("", "", "", DEV("/dev/full", 1, 77), "") },
		  ESTALE,
		  { "stale source ns/pod/one", "c 1:77", "c 1:7" } },
		{ RUNC,
		  SPEC("", "", "", "", ""),
		  { SPEC("", "", "", DEV("/dev/tty", 6, 0), "") },
		  ESTALE,
		  { "c 6:0", "c 5:0" } },
		{ RUNC,
		  SPEC("", "", "", "", ""),
		  { SPEC("", "", "", DEV("/dev/gone0", 1, 5), "") },
		  ESTALE,
		  { "stale source ns/pod/one", "no /dev/gone0", "No such file" } },
		{ RUNC,
		  SPEC("", "", "", "", ""),
		  { SPEC("", "", "",
			 "{\"path\":\"/dev/zero\",\"type\":\"b\",\"major\":1,\"minor\":5}", "") },
		  ESTALE,
		  { "b 1:5", "c 1:5" } },
		/* one destination, two files */
		{ RUNC,
		  SPEC("", BIND("/usr/lib/libacme.so", "/mine"), "", "", ""),
		  { SPEC("", LIB, "", ZERO, "") },
		  EEXIST,
		  { "/usr/lib/libacme.so", "/mine in the container's own spec" } },
		{ RUNC,
		  SPEC("", "{\"destination\":\"/usr/lib/libacme.so\",\"type\":\"tmpfs\"}", "", "",
		       ""),
		  { SPEC("", LIB, "", ZERO, "") },
		  EEXIST,
		  { "/usr/lib/libacme.so" } },
		/* two values where one is needed */
		{ RUNC,
		  SPEC("", "", "", "", ""),
		  { SPEC("\"ACME_MODE=x\"", "", "", ZERO, ""),
		    SPEC("\"ACME_MODE=y\"", "", "", ZERO, "") },
		  EEXIST,
		  { "ACME_MODE is \"x\" in source ns/pod/one", "\"y\" in ns/pod/two" } },
		/* two ways to select, of which the chain follows one */
		{ ACME_RUNTIME,
		  SPEC("", "", "", "", ""),
		  { SPEC("", BIND("/var/run/acme-devices/card-1", "/dev/null"), "", "", ""),
		    SPEC("\"ACME_VISIBLE=card-2\"", "", "", "", "") },
		  EEXIST,
		  { "ns/pod/one", "mounts", "ns/pod/two" } },
		/* the next runtime knows one list, which would mix two owners' cards */
		{ ACME_RUNTIME,
		  OWN("\"ACME_VISIBLE=mine\""),
		  { CARD_1 },
		  EEXIST,
		  { "the container itself selects cards", "ACME_VISIBLE=\"mine\"" } },
		{ RUNC,
		  SPEC("", CARD_9, "", "", ""),
		  { CARD_1 },
		  EEXIST,
		  { "the container itself selects cards", "card-9" } },
		/* which of the node's cards are a privileged source's own? */
		{ RUNC,
		  SPEC("", "", "", "", ""),
		  { SPEC("", "", "", ZERO "," FULL, ALLOW_ALL) },
		  EACCES,
		  { "source ns/pod/one is privileged", "acme" } },
		{ RUNC,
		  SPEC("", "", "", "", ""),
		  { SPEC("\"ACME_VISIBLE=card-1\"", "", "", ZERO "," FULL, ALLOW_ALL) },
		  EACCES,
		  { "privileged" } },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		struct granted_list granted;
		struct gs_err err = { 0 };
		struct given given;
		char *got;
		int r;

		give(&given, rows[i].sources);
		got = merge(rows[i].target, &given, rows[i].next, &granted, &r, &err);
		if (got || r != -rows[i].code)
			fail_msg("row %zu: %d, %s", i, r, got ? got : err.msg);
		for (size_t j = 0; j < 3 && rows[i].words[j]; j++)
			expect_words(&err, rows[i].words[j], NULL);
		assert_null(granted.v);
		take(&given);
	}
}

/* What the fence keeps: every device that a source gives, with the rights of all sources. */
static void tells_what_was_granted(void **state)
{
	static const char *const specs[3] = {
		SPEC("", "", "", ZERO "," RANDOM, RULE(1, 5, "r") "," RULE(1, 8, "rw")),
		SPEC("", "", "", ZERO "," FULL, RULE(1, 5, "w")),
	};
	struct granted_list granted;
	struct gs_err err = { 0 };
	struct given given;
	char *got;
	int r;

	give(&given, specs);
	/* also what the target has already */
	got = merge(SPEC("", "", "", ZERO, ALLOW_ALL), &given, RUNC, &granted, &r, &err);
	assert_non_null(got);
	assert_int_equal(granted.n, 2);
	assert_int_equal(granted.v[0].type, 'c');
	assert_true(granted.v[0].major == 1 && granted.v[0].minor == 5);
	assert_int_equal(granted.v[0].access, ACCESS_R | ACCESS_W);
	assert_true(granted.v[1].major == 1 && granted.v[1].minor == 8);
	assert_int_equal(granted.v[1].access, ACCESS_R | ACCESS_W);
	free(granted.v);
	free(got);
	take(&given);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_and_rules),
		cmocka_unit_test(environment),
		cmocka_unit_test(mounts_and_hooks),
		cmocka_unit_test(selected_by_the_next_runtime),
		cmocka_unit_test(what_the_target_selects_itself),
		cmocka_unit_test(strict_targets),
		cmocka_unit_test(scanned_sources),
		cmocka_unit_test(refuses),
		cmocka_unit_test(tells_what_was_granted),
	};

	return cmocka_run_group_tests_name("inject", tests, setup, teardown);
}
