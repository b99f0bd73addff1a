// SPDX-License-Identifier: Apache-2.0
/* Merges devices, rules, mounts and hooks of the sources into the target's spec. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "runtime/inject.h"

/* What was added so far, with its source, to find conflicts and repeats. */
struct added {
	const struct source *source;
	size_t index;
};

struct merge {
	struct rewrite *rw;
	const struct inject *in;
	const struct spec *target;
	struct granted_list granted;
	struct added *devices, *mounts, *hooks;
	size_t n_devices, n_mounts, n_hooks;
};

static void remember(struct added **list, size_t *n, const struct source *source, size_t index)
{
	*list = gs_grow(*list, *n, sizeof(**list));
	(*list)[(*n)++] = (struct added){ source, index };
}

/*
 * Numbers of dynamic majors go to another driver after a reload or a reboot: a number is granted
 * only while the host's own node of that path still has it.
 */
static int check_host_node(const struct source *src, const struct spec_device *d,
			   struct gs_err *err)
{
	struct stat st;
	char type;

	if (lstat(d->path, &st) < 0)
		return gs_err_set(err, ESTALE, "stale source %s: the host has no %s: %s", src->name,
				  d->path, strerror(errno));
	type = S_ISCHR(st.st_mode) ? 'c' : S_ISBLK(st.st_mode) ? 'b' : '?';
	if (type != d->type || major(st.st_rdev) != d->major || minor(st.st_rdev) != d->minor)
		return gs_err_set(err, ESTALE,
				  "stale source %s: it has %s as %c %" PRId64 ":%" PRId64
				  ", the host as %c %u:%u",
				  src->name, d->path, d->type, d->major, d->minor, type,
				  major(st.st_rdev), minor(st.st_rdev));
	return 0;
}

static bool same_device(const struct spec_device *a, const struct spec_device *b)
{
	return a->type == b->type && a->major == b->major && a->minor == b->minor;
}

static int conflict(const struct source *src, const struct spec_device *d, const char *other_name,
		    const struct spec_device *other, struct gs_err *err)
{
	return gs_err_set(err, EEXIST,
			  "%s is %c %" PRId64 ":%" PRId64 " in source %s and %c %" PRId64
			  ":%" PRId64 " in %s",
			  d->path, d->type, d->major, d->minor, src->name, other->type,
			  other->major, other->minor, other_name);
}

/* Is the device there already? -EEXIST if another one has its path. */
static int find_device(const struct merge *m, const struct source *src, const struct spec_device *d,
		       struct gs_err *err)
{
	for (size_t i = 0; i < m->target->n_devices; i++) {
		const struct spec_device *own = &m->target->device[i];

		if (strcmp(own->path, d->path) == 0)
			return same_device(own, d) ?
				       1 :
				       conflict(src, d, "the container's own spec", own, err);
	}
	for (size_t i = 0; i < m->n_devices; i++) {
		const struct source *from = m->devices[i].source;
		const struct spec_device *other = &from->spec.device[m->devices[i].index];

		if (strcmp(other->path, d->path) == 0)
			return same_device(other, d) ? 1 : conflict(src, d, from->name, other, err);
	}
	return 0;
}

/* Notes what the source may do with the device; several sources' rights add up. */
static void grant_device(struct merge *m, const struct source *src, const struct spec_device *d)
{
	unsigned int access = spec_rules_access(&src->spec, d->type, d->major, d->minor);

	if (!access)
		return;
	for (size_t i = 0; i < m->granted.n; i++) {
		struct granted *g = &m->granted.v[i];

		if (g->type == d->type && g->major == d->major && g->minor == d->minor) {
			g->access |= access;
			return;
		}
	}
	m->granted.v = gs_grow(m->granted.v, m->granted.n, sizeof(*m->granted.v));
	m->granted.v[m->granted.n++] = (struct granted){ d->type, d->major, d->minor, access };
}

/* A rule for each device behind the target's own, unless those grant it already. */
static void add_rules(struct merge *m)
{
	for (size_t i = 0; i < m->granted.n; i++) {
		const struct granted *g = &m->granted.v[i];
		unsigned int have = spec_rules_access(m->target, g->type, g->major, g->minor);
		cleanup_buf struct gs_buf rule = { 0 };

		if ((g->access & ~have) == 0)
			continue;
		slice_add_rule(&rule, g->type, g->major, g->minor, g->access);
		js_array_append(&m->rw->rules, rule.data);
	}
}

static int merge_device(struct merge *m, const struct source *src, const struct slice_item *item,
			struct gs_err *err)
{
	const struct spec_device *d = &src->spec.device[item->index];
	cleanup_free char *raw = NULL;
	int r;

	r = find_device(m, src, d, err);
	if (r < 0)
		return r;
	if (r == 0) {
		r = check_host_node(src, d, err);
		if (r < 0)
			return r;
		raw = gs_strndup(d->raw.p, d->raw.n);
		js_array_append(&m->rw->devices, raw);
		remember(&m->devices, &m->n_devices, src, item->index);
	}
	grant_device(m, src, d);
	return 0;
}

/*
 * /dev/shm as every runtime gives it to every container: a tmpfs, or the pod's own shm folder. It
 * gives way to a vendor's (NVIDIA's MPS has clients and server meet there); a volume that the
 * pod's author put there does not.
 */
static bool is_default_shm(const struct spec_mount *mount)
{
	size_t n = strlen(mount->from);

	if (strcmp(mount->to, "/dev/shm") != 0)
		return false;
	return !mount->bind || (n > 4 && strcmp(mount->from + n - 4, "/shm") == 0 &&
				!strstr(mount->from, "/volumes/"));
}

static int merge_mount(struct merge *m, const struct source *src, const struct slice_item *item,
		       struct gs_err *err)
{
	const struct spec_mount *mount = &src->spec.mount[item->index];
	const char *from = NULL, *whose = NULL;
	cleanup_free char *raw = NULL;

	for (size_t i = 0; i < m->target->n_mounts && !from; i++) {
		if (strcmp(m->target->mount[i].to, mount->to) == 0) {
			if (is_default_shm(&m->target->mount[i]) &&
			    strcmp(m->target->mount[i].from, mount->from) != 0) {
				js_array_drop(&m->rw->mounts, i);
				continue;
			}
			from = m->target->mount[i].from;
			whose = "the container's own spec";
		}
	}
	for (size_t i = 0; i < m->n_mounts && !from; i++) {
		const struct source *other = m->mounts[i].source;

		if (strcmp(other->spec.mount[m->mounts[i].index].to, mount->to) == 0) {
			from = other->spec.mount[m->mounts[i].index].from;
			whose = other->name;
		}
	}
	if (from && strcmp(from, mount->from) == 0)
		return 0;
	if (from)
		return gs_err_set(err, EEXIST, "%s is a mount of %s in source %s and of %s in %s",
				  mount->to, mount->from, src->name, from, whose);
	raw = gs_strndup(mount->raw.p, mount->raw.n);
	js_array_append(&m->rw->mounts, raw);
	remember(&m->mounts, &m->n_mounts, src, item->index);
	return 0;
}

static bool same_args(struct js a, struct js b)
{
	struct js_iter ia = js_iter(a), ib = js_iter(b);
	struct js va, vb;

	for (;;) {
		bool more_a = js_next_element(&ia, &va);
		bool more_b = js_next_element(&ib, &vb);
		cleanup_free char *s = NULL;

		if (!more_a || !more_b)
			return more_a == more_b;
		s = js_string(va);
		if (!s || !js_string_is(vb, s))
			return false;
	}
}

static bool same_hook(const struct spec_hook *a, const struct spec_hook *b)
{
	return a->stage == b->stage && strcmp(a->path, b->path) == 0 && same_args(a->args, b->args);
}

static void merge_hook(struct merge *m, const struct source *src, const struct slice_item *item)
{
	const struct spec_hook *hook = &src->spec.hook[item->index];
	cleanup_free char *raw = NULL;

	if (gs_vendor_next_runtime(item->vendor, m->in->next) &&
	    gs_vendor_next_hook(item->vendor, hook->path))
		return; /* it adds that one itself */
	for (size_t i = 0; i < m->target->n_hooks; i++)
		if (same_hook(&m->target->hook[i], hook))
			return;
	for (size_t i = 0; i < m->n_hooks; i++)
		if (same_hook(&m->hooks[i].source->spec.hook[m->hooks[i].index], hook))
			return;
	raw = gs_strndup(hook->raw.p, hook->raw.n);
	js_array_append(&m->rw->hooks[hook->stage], raw);
	remember(&m->hooks, &m->n_hooks, src, item->index);
}

static size_t count_cards(const struct source *src, const struct gs_vendor *vendor)
{
	size_t n = 0;

	for (size_t i = 0; i < src->slice.n; i++)
		if (src->slice.items[i].kind == SLICE_DEVICE &&
		    src->slice.items[i].vendor == vendor &&
		    src->slice.items[i].node->kind == GS_NODE_CARD)
			n++;
	return n;
}

/* Will the next runtime inject @vendor's cards for what this source selects? */
static bool is_selected(const struct merge *m, const struct source *src,
			const struct gs_vendor *vendor)
{
	return slice_selects(&src->slice, vendor) && gs_vendor_next_runtime(vendor, m->in->next);
}

static int merge_item(struct merge *m, const struct source *src, const struct slice_item *item,
		      struct gs_err *err)
{
	bool selected = is_selected(m, src, item->vendor);

	switch (item->kind) {
	case SLICE_DEVICE:
		if (item->node->kind == GS_NODE_CARD && spec_allows_all(&src->spec)) {
			/* a privileged container's spec lists every card of the node */
			if (selected)
				return 0;
			if (count_cards(src, item->vendor) > 1)
				return gs_err_set(
					err, EACCES,
					"source %s is privileged and has every %s card of the "
					"node: which are its own can't be told",
					src->name, item->vendor->name);
		}
		return merge_device(m, src, item, err);
	case SLICE_MOUNT:
		/* a scanned spec holds what the next runtime injected: it will do so again */
		if (selected && src->scanned && !item->mount->selects)
			return 0;
		return merge_mount(m, src, item, err);
	case SLICE_HOOK:
		if (!(selected && src->scanned))
			merge_hook(m, src, item);
		return 0;
	case SLICE_ENV:
		return 0; /* inject_env() */
	}
	return 0;
}

bool inject_gives(const struct inject *in, const struct source *src, const struct gs_vendor *vendor)
{
	bool hooked = false;

	for (size_t i = 0; i < src->slice.n; i++) {
		if (src->slice.items[i].vendor != vendor)
			continue;
		if (src->slice.items[i].kind == SLICE_DEVICE)
			return true;
		hooked = hooked || src->slice.items[i].kind == SLICE_HOOK;
	}
	return slice_selects(&src->slice, vendor) &&
	       (hooked || gs_vendor_next_runtime(vendor, in->next));
}

static int merge_source(struct merge *m, const struct source *src, struct gs_err *err)
{
	bool any = false;

	for (size_t i = 0; i < m->in->cat->n && !any; i++)
		any = inject_gives(m->in, src, &m->in->cat->v[i]);
	if (!any)
		return gs_err_set(err, ENODEV, "source %s has no devices to share", src->name);
	for (size_t i = 0; i < src->slice.n; i++) {
		const struct slice_item *item = &src->slice.items[i];
		int r;

		/* files and hooks of a maker of whom the source has no card stay behind */
		if (!inject_gives(m->in, src, item->vendor))
			continue;
		r = merge_item(m, src, item, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int inject(struct rewrite *rw, const struct inject *in, struct granted_list *ret_granted,
	   struct gs_err *err)
{
	struct merge m = { .rw = rw, .in = in, .target = rw->spec };
	int r = 0;

	for (size_t i = 0; i < in->n_sources && r == 0; i++)
		r = merge_source(&m, &in->sources[i], err);
	if (r == 0)
		add_rules(&m);
	if (r == 0)
		r = inject_env(rw, in, err);
	free(m.devices);
	free(m.mounts);
	free(m.hooks);
	if (r < 0) {
		free(m.granted.v);
		return r;
	}
	*ret_granted = m.granted;
	return 0;
}
