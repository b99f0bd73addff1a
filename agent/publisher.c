// SPDX-License-Identifier: Apache-2.0
/* Writes the node's picture into a ConfigMap. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/publisher.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "gpushare/view.h"

/* What was written last: {"v":1,"at":SERVER and PATH,"view":TEXT}, in run_dir. */
#define FILE_NAME "view.json"
#define FILE_MAX (4 * 1024 * 1024)
/* The object comes and goes under our hands so often, at most. */
#define TURNS_MAX 3

struct publisher {
	struct publisher_config config;
	char *name, *collection, *path; /* of the ConfigMap */
	uv_timer_t timer;
	struct kube_ask *asking;
	unsigned int turns; /* requests of this write */
	char *text; /* what is being written, */
	json_t *last; /* and what was last; NULL: it is not known */
	uint64_t tried_ms, next_ms; /* the loop's clock: of the last try, and not before which */
	bool changed; /* since the last look */
};

/* ---- The file. */

static char *at_of(const struct publisher *p)
{
	return gs_asprintf("%s%s", p->config.server, p->path);
}

static void take_last(struct publisher *p, const char *text)
{
	json_decref(p->last);
	p->last = json_loads(text, 0, NULL);
}

/* What an agent before this one wrote, to this very server. */
static void read_file(struct publisher *p)
{
	cleanup_free char *path = gs_asprintf("%s/" FILE_NAME, p->config.run_dir);
	cleanup_free char *at = at_of(p);
	cleanup_json json_t *file = NULL;
	const char *text, *to;

	if (gs_json_read(AT_FDCWD, path, O_NOFOLLOW, FILE_MAX, &file, NULL) < 0)
		return;
	to = json_string_value(json_object_get(file, "at"));
	text = json_string_value(json_object_get(file, "view"));
	if (to && text && strcmp(to, at) == 0)
		take_last(p, text);
}

static void write_file(struct publisher *p)
{
	cleanup_free char *at = at_of(p), *text = NULL;
	cleanup_json json_t *file = json_pack("{s:i, s:s, s:s}", "v", 1, "at", at, "view", p->text);
	cleanup_close int dirfd = gs_dir_make(p->config.run_dir, NULL, NULL);

	text = json_dumps(file, JSON_COMPACT);
	/* without it the next agent writes once more than it has to */
	if (dirfd >= 0 && text)
		(void)gs_file_publish(dirfd, FILE_NAME, text, strlen(text), NULL);
}

/* ---- Writing. */

static char *body_of(const struct publisher *p)
{
	cleanup_json json_t *o =
		json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s, s:s}}, s:{s:s}}", "apiVersion", "v1",
			  "kind", "ConfigMap", "metadata", "name", p->name, "namespace",
			  p->config.namespace, "labels", GS_VIEW_LABEL, GS_VIEW_LABEL_VALUE,
			  GS_VIEW_OWNER, GS_VIEW_OWNER_VALUE, "data", GS_VIEW_KEY, p->text);

	return json_dumps(o, JSON_COMPACT);
}

static void look_at(struct publisher *p, uint64_t at_ms);
static void ask(struct publisher *p, bool create);

static void end(struct publisher *p, const struct kube_reply *reply)
{
	if (reply->r == 0) {
		take_last(p, p->text);
		write_file(p);
	}
	free(gs_steal(p->text));
	p->config.told(reply->r < 0 ? reply->err : NULL, p->config.arg);
	/* what is refused for good is tried as rarely as what has not changed much */
	p->next_ms = p->tried_ms + (reply->r == 0 || reply->r == -EEXIST ? p->config.change_ms :
									   p->config.load_ms);
	look_at(p, p->next_ms);
}

static void on_replaced(const struct kube_reply *reply, void *arg)
{
	struct publisher *p = arg;

	p->asking = NULL;
	if (reply->r == -ENOENT && p->turns < TURNS_MAX)
		ask(p, true);
	else
		end(p, reply);
}

static void on_created(const struct kube_reply *reply, void *arg)
{
	struct publisher *p = arg;

	p->asking = NULL;
	/* 409: it has come meanwhile, or an answer of ours was lost */
	if (reply->r == -EEXIST && p->turns < TURNS_MAX)
		ask(p, false);
	else
		end(p, reply);
}

static void ask(struct publisher *p, bool create)
{
	cleanup_free char *body = body_of(p);

	p->turns++;
	p->asking = kube_ask(p->config.kube, create ? "POST" : "PUT",
			     create ? p->collection : p->path, "application/json", body,
			     create ? on_created : on_replaced, p);
}

/* ---- Looking. */

/* Is there anything to be written, and if so, why not later? */
static bool is_due(const struct publisher *p, const json_t *picture)
{
	int64_t age_ms = p->last ? publisher_time(picture) - publisher_time(p->last) : -1;

	/* below 0: a clock that was set back */
	if (age_ms < 0 || age_ms >= p->config.refresh_ms ||
	    !publisher_same(p->last, picture, false))
		return true;
	return age_ms >= p->config.load_ms && !publisher_same(p->last, picture, true);
}

static json_t *look(struct publisher *p)
{
	json_t *picture = p->config.look(p->config.arg);
	time_t now = time(NULL);
	struct tm tm;
	char text[32];

	if (!picture)
		return NULL;
	(void)gmtime_r(&now, &tm);
	(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	(void)json_object_set_new(picture, "v", json_integer(GS_VIEW_VERSION));
	(void)json_object_set_new(picture, "time", json_string(text));
	return picture;
}

static void on_timer(uv_timer_t *timer)
{
	struct publisher *p = timer->data;
	cleanup_json json_t *picture = NULL;

	/* the end of that looks again */
	if (p->asking)
		return;
	picture = look(p);
	/* what the look itself found is in it */
	p->changed = false;
	if (!picture) {
		look_at(p, uv_now(p->config.loop) + p->config.settle_ms);
		return;
	}
	p->text = publisher_fit(picture, p->config.max);
	if (!is_due(p, picture)) {
		free(gs_steal(p->text));
		look_at(p, uv_now(p->config.loop) + p->config.load_ms);
		return;
	}
	p->tried_ms = uv_now(p->config.loop);
	p->turns = 0;
	ask(p, false);
}

static void look_at(struct publisher *p, uint64_t at_ms)
{
	uint64_t now = uv_now(p->config.loop);

	(void)uv_timer_start(&p->timer, on_timer, at_ms > now ? at_ms - now : 0, 0);
}

void publisher_changed(struct publisher *p)
{
	uint64_t soon = uv_now(p->config.loop) + p->config.settle_ms;

	if (p->changed || p->asking)
		return;
	p->changed = true;
	/* changes come in bunches, and whoever tells of one is amid it */
	look_at(p, p->next_ms > soon ? p->next_ms : soon);
}

struct publisher *publisher_new(const struct publisher_config *config)
{
	struct publisher *p = gs_calloc(1, sizeof(*p));

	p->config = *config;
	p->name = gs_asprintf(GS_VIEW_PREFIX "%s", config->node);
	p->collection = gs_asprintf("/api/v1/namespaces/%s/configmaps", config->namespace);
	p->path = gs_asprintf("%s/%s", p->collection, p->name);
	p->timer.data = p;
	read_file(p);
	(void)uv_timer_init(config->loop, &p->timer);
	look_at(p, uv_now(config->loop) + config->settle_ms);
	return p;
}

static void on_close(uv_handle_t *handle)
{
	struct publisher *p = handle->data;

	free(p->name);
	free(p->collection);
	free(p->path);
	free(p->text);
	json_decref(p->last);
	free(p);
}

void publisher_free(struct publisher *p)
{
	if (!p)
		return;
	kube_ask_cancel(p->asking);
	p->asking = NULL;
	uv_close((uv_handle_t *)&p->timer, on_close);
}
