// SPDX-License-Identifier: Apache-2.0
/* Which cards a container uses, by the vendor slice of its spec. */
#include <stdlib.h>
#include <string.h>

#include "agent/container.h"
#include "common/cleanup.h"
#include "common/js.h"
#include "common/kmsg.h"
#include "common/xalloc.h"

/* Does the slice's rule allow every device? Then its devices are the node's and not its own. */
static bool allows_all(struct js rules)
{
	struct js_iter it = js_iter(rules);
	struct js rule;

	while (js_next_element(&it, &rule)) {
		struct js allow = { 0 }, major = { 0 };
		int64_t n;

		if (js_member(rule, "allow", &allow, NULL) < 0 ||
		    js_member(rule, "major", &major, NULL) < 0)
			continue;
		if (js_is(allow, JS_BOOL) && allow.p[0] == 't' &&
		    (js_absent(major) || (js_int64(major, &n) && n < 0)))
			return true;
	}
	return false;
}

static void by_devices(struct js devices, const struct cards *cards, struct gs_strv *ret)
{
	static const char *const keys[] = { "type", "major", "minor" };
	struct js_iter it = js_iter(devices);
	struct js device, v[3];

	while (js_next_element(&it, &device)) {
		const struct card *card;
		int64_t major, minor;

		if (js_members(device, keys, 3, v, NULL) < 0 || !js_int64(v[1], &major) ||
		    !js_int64(v[2], &minor) || major < 0 || major > 0xfff || minor < 0 ||
		    minor > 0xfffff)
			continue;
		card = cards_of_dev(cards, gs_kdev((unsigned int)major, (unsigned int)minor));
		if (card)
			gs_strv_add_once(ret, card->name);
	}
}

/* Cards of @vendor that the selecting value @list names. */
static void by_value(const struct gs_vendor *vendor, const char *list, bool all_is_each,
		     const struct cards *cards, struct gs_strv *ret)
{
	bool each = all_is_each && strcmp(list, "all") == 0;

	for (size_t i = 0; i < cards->n; i++) {
		const struct card *card = &cards->v[i];

		if (strcmp(card->vendor, vendor->name) != 0)
			continue;
		for (size_t j = 0; j < card->select.n; j++)
			if (each || gs_commas_have(list, strlen(list), card->select.v[j]))
				gs_strv_add_once(ret, card->name);
	}
}

static void by_env(const struct gs_record *rec, struct js envs, bool all_is_each,
		   const struct cards *cards, const struct gs_catalogue *cat, struct gs_strv *ret)
{
	struct js_iter it = js_iter(envs);
	struct js env;

	while (js_next_element(&it, &env)) {
		cleanup_free char *text = js_string(env);
		const char *value = text ? strchr(text, '=') : NULL;

		if (!value)
			continue;
		for (size_t i = 0; i < cat->n; i++) {
			const struct gs_env *known =
				gs_vendor_env(&cat->v[i], text, (size_t)(value - text));

			if (known && known->selects &&
			    gs_vendor_next_runtime(&cat->v[i], rec->next))
				by_value(&cat->v[i], value + 1, all_is_each, cards, ret);
		}
	}
}

static void by_mounts(const struct gs_record *rec, struct js mounts, const struct cards *cards,
		      const struct gs_catalogue *cat, struct gs_strv *ret)
{
	static const char *const keys[] = { "source", "destination" };
	struct js_iter it = js_iter(mounts);
	struct js mount, v[2];

	while (js_next_element(&it, &mount)) {
		cleanup_free char *from = NULL, *to = NULL;

		if (js_members(mount, keys, 2, v, NULL) < 0)
			continue;
		from = js_string(v[0]);
		to = js_string(v[1]);
		for (size_t i = 0; from && to && i < cat->n; i++) {
			const struct gs_mount *known = gs_vendor_mount(&cat->v[i], to, from);

			if (known && known->selects &&
			    gs_vendor_next_runtime(&cat->v[i], rec->next))
				by_value(&cat->v[i], strrchr(to, '/') + 1, false, cards, ret);
		}
	}
}

void container_cards(const struct gs_record *rec, const struct cards *cards,
		     const struct gs_catalogue *cat, bool all_is_each, struct gs_strv *ret)
{
	struct js root, envs = { 0 }, mounts = { 0 }, devices = { 0 }, rules = { 0 };

	if (js_parse(rec->spec, rec->spec_len, &root, NULL) < 0 ||
	    js_path(root, &envs, NULL, "process", "env", NULL) < 0 ||
	    js_member(root, "mounts", &mounts, NULL) < 0 ||
	    js_path(root, &devices, NULL, "linux", "devices", NULL) < 0 ||
	    js_path(root, &rules, NULL, "linux", "resources", "devices", NULL) < 0)
		return;
	if (!allows_all(rules))
		by_devices(devices, cards, ret);
	if (rec->next) {
		by_env(rec, envs, all_is_each, cards, cat, ret);
		by_mounts(rec, mounts, cards, cat, ret);
	}
	gs_strv_sort(ret);
}
