// SPDX-License-Identifier: Apache-2.0
/* The vendor slice of a spec. */
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/xalloc.h"
#include "runtime/slice.h"

static void add_item(struct slice *slice, struct slice_item item)
{
	slice->items = gs_grow(slice->items, slice->n, sizeof(item));
	slice->items[slice->n++] = item;
}

void slice_free(struct slice *slice)
{
	free(slice->items);
	*slice = (struct slice){ 0 };
}

/* Device numbers that no driver can have match no node. */
static bool numbers_fit(const struct spec_device *d)
{
	return d->major >= 0 && d->major <= UINT32_MAX && d->minor >= 0 && d->minor <= UINT32_MAX;
}

static void find_device(const struct gs_catalogue *cat, struct slice *slice, size_t index)
{
	const struct spec_device *d = &slice->spec->device[index];
	const struct gs_vendor *vendor;
	const struct gs_node *node;

	if (d->type == 'p' || !numbers_fit(d))
		return;
	vendor = gs_catalogue_node(cat, d->path, (unsigned int)d->major, (unsigned int)d->minor,
				   &node);
	if (vendor)
		add_item(slice, (struct slice_item){ .kind = SLICE_DEVICE,
						     .vendor = vendor,
						     .index = index,
						     .node = node });
}

static void find_mount(const struct gs_catalogue *cat, struct slice *slice, size_t index)
{
	const struct spec_mount *m = &slice->spec->mount[index];

	if (!m->bind)
		return;
	for (size_t i = 0; i < cat->n; i++) {
		const struct gs_mount *mount = gs_vendor_mount(&cat->v[i], m->to, m->from);

		if (!mount)
			continue;
		add_item(slice, (struct slice_item){ .kind = SLICE_MOUNT,
						     .vendor = &cat->v[i],
						     .index = index,
						     .mount = mount });
		return;
	}
}

/* One variable may belong to several makers (HIP_VISIBLE_DEVICES): an item for each. */
static void find_env(const struct gs_catalogue *cat, struct slice *slice, size_t index)
{
	const struct spec_env *e = &slice->spec->envs[index];

	for (size_t i = 0; i < cat->n; i++) {
		const struct gs_env *env = gs_vendor_env(&cat->v[i], e->text, e->name_len);

		if (env)
			add_item(slice, (struct slice_item){ .kind = SLICE_ENV,
							     .vendor = &cat->v[i],
							     .index = index,
							     .env = env });
	}
}

static void find_hook(const struct gs_catalogue *cat, struct slice *slice, size_t index)
{
	for (size_t i = 0; i < cat->n; i++) {
		const char *path = slice->spec->hook[index].path;

		if (!gs_vendor_hook(&cat->v[i], path) && !gs_vendor_next_hook(&cat->v[i], path))
			continue;
		add_item(slice, (struct slice_item){
					.kind = SLICE_HOOK, .vendor = &cat->v[i], .index = index });
		return;
	}
}

void slice_find(const struct spec *spec, const struct gs_catalogue *cat, struct slice *ret)
{
	*ret = (struct slice){ .spec = spec };
	for (size_t i = 0; i < spec->n_devices; i++)
		find_device(cat, ret, i);
	for (size_t i = 0; i < spec->n_mounts; i++)
		find_mount(cat, ret, i);
	for (size_t i = 0; i < spec->n_envs; i++)
		find_env(cat, ret, i);
	for (size_t i = 0; i < spec->n_hooks; i++)
		find_hook(cat, ret, i);
}

bool slice_item_selects(const struct slice *slice, const struct slice_item *item)
{
	const struct spec_env *e;

	if (item->kind == SLICE_MOUNT)
		return item->mount->selects;
	if (item->kind != SLICE_ENV || !item->env->selects)
		return false;
	e = &slice->spec->envs[item->index];
	return e->value[0] && !gs_strv_has(&item->vendor->select_none, e->value);
}

bool slice_selects(const struct slice *slice, const struct gs_vendor *vendor)
{
	for (size_t i = 0; i < slice->n; i++)
		if ((!vendor || slice->items[i].vendor == vendor) &&
		    slice_item_selects(slice, &slice->items[i]))
			return true;
	return false;
}

bool slice_has_cards(const struct slice *slice, const struct gs_vendor *vendor)
{
	for (size_t i = 0; i < slice->n; i++)
		if (slice->items[i].kind == SLICE_DEVICE &&
		    (!vendor || slice->items[i].vendor == vendor))
			return true;
	return slice_selects(slice, vendor);
}

/* ",\"<key>\":<value>": a fence writes a thousand of them, and printf would be half its time. */
static void add_number(struct gs_buf *out, const char *key, int64_t value)
{
	char digits[20];
	size_t i = sizeof(digits);

	do
		digits[--i] = (char)('0' + value % 10);
	while ((value /= 10) > 0 && i > 0);
	gs_buf_adds(out, key);
	gs_buf_add(out, digits + i, sizeof(digits) - i);
}

void slice_add_rule(struct gs_buf *out, char type, int64_t major, int64_t minor,
		    unsigned int access)
{
	gs_buf_adds(out, "{\"allow\":true,\"type\":\"");
	gs_buf_addc(out, type);
	gs_buf_addc(out, '"');
	if (major != RULE_ANY)
		add_number(out, ",\"major\":", major);
	if (minor != RULE_ANY)
		add_number(out, ",\"minor\":", minor);
	gs_buf_adds(out, ",\"access\":\"");
	if (access & ACCESS_R)
		gs_buf_addc(out, 'r');
	if (access & ACCESS_W)
		gs_buf_addc(out, 'w');
	if (access & ACCESS_M)
		gs_buf_addc(out, 'm');
	gs_buf_adds(out, "\"}");
}

/* The raw texts of all items of one kind (hooks: of one stage), as an array. */
static void add_raw(const struct slice *slice, enum slice_kind kind, int stage, struct gs_buf *out)
{
	const struct spec *spec = slice->spec;
	bool first = true;

	gs_buf_addc(out, '[');
	for (size_t i = 0; i < slice->n; i++) {
		const struct slice_item *item = &slice->items[i];
		struct js raw;

		if (item->kind != kind)
			continue;
		if (kind == SLICE_DEVICE)
			raw = spec->device[item->index].raw;
		else if (kind == SLICE_MOUNT)
			raw = spec->mount[item->index].raw;
		else if ((int)spec->hook[item->index].stage == stage)
			raw = spec->hook[item->index].raw;
		else
			continue;
		if (!first)
			gs_buf_addc(out, ',');
		first = false;
		gs_buf_add(out, raw.p, raw.n);
	}
	gs_buf_addc(out, ']');
}

static void add_envs(const struct slice *slice, struct gs_buf *out)
{
	bool first = true;

	gs_buf_addc(out, '[');
	for (size_t i = 0; i < slice->n; i++) {
		const struct slice_item *item = &slice->items[i];

		/* an item for each maker, but one entry */
		if (item->kind != SLICE_ENV || (i > 0 && slice->items[i - 1].kind == SLICE_ENV &&
						slice->items[i - 1].index == item->index))
			continue;
		if (!first)
			gs_buf_addc(out, ',');
		first = false;
		gs_buf_add_json(out, slice->spec->envs[item->index].text);
	}
	gs_buf_addc(out, ']');
}

static void add_rules(const struct slice *slice, struct gs_buf *out)
{
	const struct spec *spec = slice->spec;
	bool first = true;

	/* a spec without rules lists its own devices, not the node's */
	if (spec->n_rules && spec_allows_all(spec)) {
		gs_buf_addc(out, '[');
		slice_add_rule(out, 'c', RULE_ANY, RULE_ANY, spec_default_access(spec, 'c'));
		gs_buf_addc(out, ']');
		return;
	}
	gs_buf_addc(out, '[');
	for (size_t i = 0; i < slice->n; i++) {
		const struct spec_device *d;
		unsigned int access;

		if (slice->items[i].kind != SLICE_DEVICE)
			continue;
		d = &spec->device[slice->items[i].index];
		access = spec_rules_access(spec, d->type, d->major, d->minor);
		if (!access)
			continue;
		if (!first)
			gs_buf_addc(out, ',');
		first = false;
		slice_add_rule(out, d->type, d->major, d->minor, access);
	}
	gs_buf_addc(out, ']');
}

void slice_text(const struct slice *slice, struct gs_buf *out)
{
	gs_buf_adds(out, "{\"process\":{\"env\":");
	add_envs(slice, out);
	gs_buf_adds(out, "},\"mounts\":");
	add_raw(slice, SLICE_MOUNT, -1, out);
	gs_buf_adds(out, ",\"hooks\":{");
	for (int stage = 0; stage < STAGE_COUNT; stage++) {
		gs_buf_addf(out, "%s\"%s\":", stage ? "," : "", spec_stage_names[stage]);
		add_raw(slice, SLICE_HOOK, stage, out);
	}
	gs_buf_adds(out, "},\"linux\":{\"devices\":");
	add_raw(slice, SLICE_DEVICE, -1, out);
	gs_buf_adds(out, ",\"resources\":{\"devices\":");
	add_rules(slice, out);
	gs_buf_adds(out, "}}}");
}
