// SPDX-License-Identifier: Apache-2.0
/*
 * config.json of a target. It is read, its vendor slice is cut, a fixed source is merged into it
 * with limits and the fence, and the new text is looked at: it is JSON, a second pass changes
 * nothing, and every byte outside of what was edited is the same.
 */
#include <errno.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "runtime/fence.h"
#include "runtime/inject.h"
#include "runtime/limits.h"
#include "tests/fuzz/fuzz.h"

/* Nodes that every host has, so that none is stale. */
static const char catalogue[] =
	"{\"name\":\"acme\",\"title\":\"Acme\",\"nodes\":["
	"{\"glob\":\"/dev/{zero,full}\",\"kind\":\"card\"},"
	"{\"glob\":\"/dev/urandom\",\"kind\":\"shared\"}],"
	"\"env\":[{\"name\":\"ACME_VISIBLE\",\"merge\":\"list\",\"selects\":true},"
	"{\"name\":\"NVIDIA_VISIBLE_DEVICES\",\"merge\":\"list\",\"selects\":true},"
	"{\"name\":\"ACME_MODE\",\"merge\":\"replace\"},"
	"{\"name\":\"ACME_ORDER\",\"merge\":\"local\"}],"
	"\"select_none\":[\"void\",\"none\",\"\"],\"mounts\":[\"/usr/lib/libacme*\"],"
	"\"hooks\":[\"*/acme-hook\"],\"next\":{\"runtimes\":[\"acme-runtime\"]}}";

static const char source_json[] =
	"{\"process\":{\"env\":[\"ACME_VISIBLE=card-1\",\"ACME_MODE=fast\"]},\"mounts\":["
	"{\"destination\":\"/usr/lib/libacme.so\",\"type\":\"bind\","
	"\"source\":\"/usr/lib/libacme.so\"}],\"hooks\":{\"createContainer\":["
	"{\"path\":\"/usr/bin/acme-hook\",\"args\":[\"acme-hook\",\"x\"]}]},\"linux\":{"
	"\"devices\":[{\"path\":\"/dev/zero\",\"type\":\"c\",\"major\":1,\"minor\":5},"
	"{\"path\":\"/dev/urandom\",\"type\":\"c\",\"major\":1,\"minor\":9}],\"resources\":{"
	"\"devices\":[{\"allow\":true,\"type\":\"c\",\"major\":1,\"access\":\"rw\"}]}}}";

static struct gs_catalogue cat;
static struct source source;

static void set_up(void)
{
	char *dirs[] = { (char *)fuzz_dir() };
	const struct gs_strv list = { dirs, 1 };
	struct gs_err err = { 0 };

	if (cat.n)
		return;
	fuzz_file("acme.json", catalogue, sizeof(catalogue) - 1);
	CHECK(gs_catalogue_load(&cat, &list, &err) == 0);
	source.name = gs_strdup("ns/pod/main");
	CHECK(spec_read(&source.spec, gs_strdup(source_json), sizeof(source_json) - 1, &err) == 0);
	slice_find(&source.spec, &cat, &source.slice);
}

/* One pass. 1: the target can't be edited; 0 and the new text; or an error. */
static int edit(const struct spec *spec, const char *next, struct gs_buf *out, bool *ret_changed,
		struct gs_err *err)
{
	const struct request req = { .vcpu_milli = 1500, .vmem_bytes = 1 << 30 };
	struct granted_list granted = { 0 };
	cleanup_rewrite struct rewrite rw;
	cleanup_slice struct slice own = { 0 };
	const struct inject in = { .cat = &cat,
				   .own = &own,
				   .sources = &source,
				   .n_sources = 1,
				   .next = next,
				   .strict = spec_allows_all(spec) };
	int r;

	rewrite_begin(&rw, spec);
	if (!js_is(spec->process, JS_OBJECT) || !js_is(spec->linux_obj, JS_OBJECT))
		return 1;
	slice_find(spec, &cat, &own);
	r = inject(&rw, &in, &granted, err);
	if (r == 0)
		r = fence(&rw, &cat, &granted, err);
	if (r == 0)
		r = limits_apply(&rw, &req, err);
	free(granted.v);
	if (r < 0)
		return r;
	*ret_changed = rewrite_changes(&rw);
	rewrite_text(&rw, out);
	return 0;
}

static struct js member(struct js object, const char *key)
{
	struct js v = { 0 };

	CHECK(js_member(object, key, &v, NULL) == 0);
	return v;
}

/* The places that may be edited, in any order. */
#define PLACES 5
struct places {
	struct js v[PLACES], parent[PLACES];
};

static struct places places_of(const struct spec *spec)
{
	return (struct places){
		{ spec->env, spec->mounts, spec->hooks, spec->devices,
		  member(spec->linux_obj, "resources") },
		{ spec->process, spec->root, spec->root, spec->linux_obj, spec->linux_obj },
	};
}

/* From the end of the member in front of @value (or the '{') to the end of @value. */
static struct js whole_member(struct js parent, struct js value)
{
	struct js_iter it = js_iter(parent);
	const char *start = parent.p + 1;
	struct js k, v;

	while (js_next_member(&it, &k, &v)) {
		if (v.p == value.p)
			return (struct js){ start, (size_t)(value.p + value.n - start) };
		start = v.p + v.n;
	}
	CHECK(!"a value that is not in its parent");
	return (struct js){ 0 };
}

static int by_place(const void *a, const void *b)
{
	const struct js *x = a, *y = b;

	return x->p < y->p ? -1 : x->p > y->p;
}

/* The text without what may differ: values that were there, members that @before did not have. */
static void skeleton(const struct spec *spec, const struct places *own, const struct places *before,
		     struct gs_buf *out)
{
	const char *p = spec->text;
	struct js cut[PLACES];
	size_t n = 0;

	for (size_t i = 0; i < PLACES; i++) {
		if (!own->v[i].n)
			continue;
		cut[n++] = before->v[i].n ? own->v[i] : whole_member(own->parent[i], own->v[i]);
	}
	qsort(cut, n, sizeof(*cut), by_place);
	for (size_t i = 0; i < n; i++) {
		/* members that are new in a row overlap at their ends alone */
		CHECK(cut[i].p >= p);
		gs_buf_add(out, p, (size_t)(cut[i].p - p));
		p = cut[i].p + cut[i].n;
	}
	gs_buf_add(out, p, (size_t)(spec->text + spec->len - p));
}

static bool same_text(struct js a, struct js b)
{
	return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

/* Every element of the old array stands in the new one, in its order and byte for byte. */
static void check_kept(struct js before, struct js after)
{
	struct js_iter ib = js_iter(before), ia = js_iter(after);
	struct js b, a;

	while (js_next_element(&ib, &b)) {
		do
			CHECK(js_next_element(&ia, &a));
		while (!same_text(a, b));
	}
}

/* The same for the environment, but for the vendor's own names. */
static void check_env_kept(const struct spec *before, const struct spec *after)
{
	size_t j = 0;

	for (size_t i = 0; i < before->n_envs; i++) {
		const struct spec_env *e = &before->envs[i];

		if (gs_vendor_env(&cat.v[0], e->text, e->name_len))
			continue;
		while (j < after->n_envs && strcmp(after->envs[j].text, e->text) != 0)
			j++;
		CHECK(j++ < after->n_envs);
	}
	for (size_t i = 0; i < cat.v[0].n_envs; i++) {
		const char *name = cat.v[0].envs[i].name;
		size_t n = 0;

		for (j = 0; j < after->n_envs; j++)
			n += after->envs[j].name_len == strlen(name) &&
			     memcmp(after->envs[j].text, name, strlen(name)) == 0;
		CHECK(n <= 1);
	}
}

static void check_outside(const struct spec *before, const struct spec *after)
{
	struct places b = places_of(before), a = places_of(after);
	cleanup_buf struct gs_buf sb = { 0 };
	cleanup_buf struct gs_buf sa = { 0 };

	for (size_t i = 0; i < PLACES; i++)
		CHECK(!b.v[i].n || a.v[i].n); /* nothing goes as a whole */
	skeleton(before, &b, &b, &sb);
	skeleton(after, &a, &b, &sa);
	CHECK(sb.len == sa.len && memcmp(sb.data, sa.data, sb.len) == 0);
	check_env_kept(before, after);
	check_kept(before->mounts, after->mounts);
	for (int i = 0; i < STAGE_COUNT; i++)
		check_kept(before->stages[i], after->stages[i]);
	if (!spec_allows_all(before)) {
		check_kept(before->devices, after->devices);
		check_kept(before->rules, after->rules);
	}
}

/* The target can do with the source's devices what the source can. */
static void check_given(const struct spec *after, const char *next)
{
	bool zero = false;

	for (size_t i = 0; i < after->n_devices; i++)
		zero = zero || strcmp(after->device[i].path, "/dev/zero") == 0;
	CHECK(zero);
	/* crun without any rule allows everything */
	if (after->n_rules || !strstr(next, "crun"))
		CHECK((spec_rules_access(after, 'c', 1, 5) & 3) == 3);
	/* beside a card that the target itself has */
	CHECK(strncmp(spec_env_value(after, "ACME_VISIBLE"), "card-1", 6) == 0);
}

static void check_slice(const struct spec *spec)
{
	cleanup_slice struct slice slice = { 0 };
	cleanup_slice struct slice again = { 0 };
	cleanup_buf struct gs_buf second = { 0 };
	cleanup_spec struct spec cut = { 0 };
	struct gs_buf first = { 0 };
	struct gs_err err = { 0 };
	size_t len;

	slice_find(spec, &cat, &slice);
	slice_text(&slice, &first);
	len = first.len;
	CHECK(spec_read(&cut, gs_buf_steal(&first), len, &err) == 0);
	slice_find(&cut, &cat, &again);
	slice_text(&again, &second);
	CHECK(second.len == cut.len && memcmp(second.data, cut.text, cut.len) == 0);
	CHECK(slice_has_cards(&slice, NULL) == slice_has_cards(&again, NULL));
}

static void check_edit(const struct spec *spec, const char *next)
{
	cleanup_buf struct gs_buf twice = { 0 };
	cleanup_spec struct spec after = { 0 };
	struct gs_buf once = { 0 };
	struct gs_err err = { 0 };
	bool changed = false;
	size_t len;
	int r;

	r = edit(spec, next, &once, &changed, &err);
	if (r < 0)
		check_error(r, &err);
	if (r != 0)
		return;
	CHECK(changed || (once.len == spec->len && memcmp(once.data, spec->text, once.len) == 0));
	len = once.len;
	CHECK(spec_read(&after, gs_buf_steal(&once), len, &err) == 0);
	check_outside(spec, &after);
	check_given(&after, next);
	CHECK(edit(&after, next, &twice, &changed, &err) == 0);
	CHECK(twice.len == after.len && memcmp(twice.data, after.text, after.len) == 0);
	CHECK(!changed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const nexts[] = { "/usr/sbin/runc", "/usr/bin/crun",
					     "/usr/bin/acme-runtime" };
	struct spec spec = { 0 };
	struct gs_err err = { 0 };
	char *ours;
	int r;

	set_up();
	r = spec_read(&spec, copy_input(data, size), size, &err);
	if (r < 0) {
		check_error(r, &err);
		CHECK(!spec.text);
		return 0;
	}
	(void)spec_is_annotated(&spec);
	ours = spec_our_annotations(&spec);
	CHECK(ours[0] == '{');
	free(ours);
	check_slice(&spec);
	check_edit(&spec, nexts[size % 3]);
	spec_free(&spec);
	return 0;
}
