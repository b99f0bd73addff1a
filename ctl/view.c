// SPDX-License-Identifier: Apache-2.0
/* The pictures of one node, or of all. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "ctl/ask.h"
#include "ctl/kubectl.h"
#include "ctl/view.h"
#include "gpushare/agent.h"
#include "gpushare/view.h"

void view_free(struct view *view)
{
	for (size_t i = 0; i < view->n; i++) {
		picture_free(&view->v[i].pic);
		free(view->v[i].name);
	}
	free(view->v);
	gs_strv_free(&view->wrong);
	*view = (struct view){ 0 };
}

static struct view_node *add_node(struct view *view)
{
	view->v = gs_grow(view->v, view->n, sizeof(*view->v));
	view->v[view->n] = (struct view_node){ 0 };
	return &view->v[view->n++];
}

int view_of_agent(const struct gs_config *config, uint64_t timeout_ms, struct view *ret,
		  struct gs_err *err)
{
	json_t *answer = NULL;
	int r = ctl_ask(config, GS_OP_STATUS, NULL, timeout_ms, &answer, err);

	*ret = (struct view){ 0 };
	if (r == 0)
		picture_read(answer, &add_node(ret)->pic);
	return r;
}

/* ---- One ConfigMap. */

/* How old the picture is; -1: it does not say. One of a clock that is ahead is new. */
static int64_t age_of(const json_t *picture, int64_t now_ms)
{
	const char *text = json_string_value(json_object_get(picture, "time"));
	struct tm tm = { 0 };
	const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm) : NULL;
	int64_t age_ms;

	if (!end || *end || tm.tm_year < 70 || tm.tm_year > 8000)
		return -1;
	age_ms = now_ms - (int64_t)timegm(&tm) * 1000;
	return age_ms > 0 ? age_ms : 0;
}

/* States go on while a picture lies there. */
static void grow_older(struct picture *pic, int64_t age_ms)
{
	for (size_t i = 0; age_ms > 0 && i < pic->n_holdings; i++) {
		int64_t *since_ms = &pic->holdings[i].since_ms;

		if (*since_ms >= 0)
			*since_ms = *since_ms < INT64_MAX - age_ms ? *since_ms + age_ms : INT64_MAX;
	}
}

static int read_picture(const char *text, int64_t now_ms, struct view_node *node,
			struct gs_err *err)
{
	cleanup_json json_t *picture = NULL;
	json_int_t version, left_out;
	size_t len = strlen(text);
	int r;

	/* a ConfigMap has no more than that */
	if (len > 1024 * 1024)
		return gs_err_set(err, EFBIG, "it is too long");
	r = gs_json_parse(GS_VIEW_KEY, text, len, &picture, err);
	if (r < 0)
		return r;
	version = json_integer_value(json_object_get(picture, "v"));
	if (version != GS_VIEW_VERSION)
		return gs_err_set(err, EINVAL,
				  "it is of version %" JSON_INTEGER_FORMAT ", and not of %d",
				  version, GS_VIEW_VERSION);
	left_out = json_integer_value(json_object_get(picture, "left_out"));
	node->left_out = left_out > 0 ? (uint64_t)left_out : 0;
	node->age_ms = age_of(picture, now_ms);
	node->stale = node->age_ms < 0 || node->age_ms > GS_VIEW_STALE_S * 1000;
	picture_read(gs_steal(picture), &node->pic);
	grow_older(&node->pic, node->age_ms);
	return 0;
}

static void read_map(struct js map, int64_t now_ms, struct view *view)
{
	const size_t prefix = strlen(GS_VIEW_PREFIX);
	cleanup_free char *name = NULL, *text = NULL;
	struct js v = { 0 }, data = { 0 };
	struct view_node node = { 0 };
	struct gs_err err = { 0 };
	int r;

	if (js_path(map, &v, NULL, "metadata", "name", NULL) == 0)
		name = js_string(v);
	if (!name || strncmp(name, GS_VIEW_PREFIX, prefix) != 0 || !name[prefix]) {
		gs_strv_take(&view->wrong, gs_asprintf("ConfigMap %.253s has the label of a node's "
						       "view, and is none",
						       name ? name : "without a name"));
		return;
	}
	r = js_member(map, "data", &data, &err);
	if (r == 0)
		r = js_map_member(data, GS_VIEW_KEY, &v, &err);
	text = r == 0 ? js_string(v) : NULL;
	if (r == 0 && !text)
		r = gs_err_set(&err, EINVAL, "it has no " GS_VIEW_KEY);
	if (r == 0)
		r = read_picture(text, now_ms, &node, &err);
	if (r < 0) {
		gs_strv_take(&view->wrong, gs_asprintf("node %.253s: its view can't be read: %s",
						       name + prefix, err.msg));
		return;
	}
	node.name = gs_strdup(name + prefix);
	*add_node(view) = node;
}

int view_read(const char *text, size_t len, int64_t now_ms, struct view *ret, struct gs_err *err)
{
	struct js root, items = { 0 }, item;
	struct js_iter it;
	int r = js_parse(text, len, &root, err);

	*ret = (struct view){ .cluster = true };
	if (r == 0)
		r = js_member(root, "items", &items, err);
	if (r == 0 && (!js_is(root, JS_OBJECT) || (items.n && !js_is(items, JS_ARRAY))))
		r = gs_err_set(err, EINVAL, "it is no list of ConfigMaps");
	if (r < 0)
		return gs_err_prefix(err, "what kubectl printed");
	if (!items.n)
		read_map(root, now_ms, ret);
	it = js_iter(items);
	while (items.n && js_next_element(&it, &item))
		read_map(item, now_ms, ret);
	return 0;
}

int view_of_cluster(const struct view_kubectl *kubectl, struct view *ret, struct gs_err *err)
{
	cleanup_free char *text = NULL;
	struct timespec now;
	size_t len;
	int r = kubectl_get_maps(kubectl, &text, &len, err);

	*ret = (struct view){ .cluster = true };
	if (r < 0)
		return r;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	return view_read(text, len, (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000, ret, err);
}

/* ---- All at a glance. */

size_t view_states(const struct view *view, struct gs_strv *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < view->n; i++) {
		const struct picture *pic = &view->v[i].pic;

		for (size_t k = 0; k < pic->n_cards; k++, n++)
			gs_strv_add(ret, picture_state(pic, &pic->cards[k]));
	}
	gs_strv_sort(ret);
	return n;
}

char *view_summary(const struct view *view)
{
	cleanup_strv struct gs_strv states = { 0 };
	struct gs_buf line = { 0 };
	size_t stale = 0, run;

	for (size_t i = 0; i < view->n; i++)
		stale += view->v[i].stale;
	if (view->cluster) {
		gs_buf_addf(&line, "nodes: %zu", view->n);
		if (stale)
			gs_buf_addf(&line, " (%zu stale)", stale);
		gs_buf_adds(&line, ", ");
	}
	gs_buf_addf(&line, "cards: %zu", view_states(view, &states));
	for (size_t i = 0; i < states.n; i += run) {
		run = picture_run(&states, i);
		gs_buf_addf(&line, "%s%zu %s", i ? ", " : " (", run, states.v[i]);
	}
	gs_buf_adds(&line, states.n ? ")" : "");
	return gs_buf_steal(&line);
}
