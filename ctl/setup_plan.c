// SPDX-License-Identifier: Apache-2.0
/* Plans of gpusharectl setup: files, and edits of their texts that can be taken back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "ctl/root.h"
#include "ctl/setup.h"

static char *copy(const char *text)
{
	return text ? gs_strdup(text) : NULL;
}

static bool same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

void setup_plan_free(struct setup_plan *plan)
{
	for (size_t i = 0; i < plan->n; i++) {
		free(plan->files[i].path);
		free(plan->files[i].now);
		free(plan->files[i].before);
		free(plan->files[i].after);
		gs_strv_free(&plan->files[i].old);
		gs_strv_free(&plan->files[i].new);
	}
	free(plan->files);
	gs_strv_free(&plan->then);
	gs_strv_free(&plan->notes);
	setup_record_free(plan->record);
}

/* What is in the file without what an earlier setup put there. */
static char *without_us(const struct setup_file *recorded, const char *now)
{
	char *text;

	if (!recorded)
		return copy(now);
	if (same(now, recorded->after))
		return copy(recorded->before);
	text = now ? setup_unedit(now, &recorded->old, &recorded->new) : NULL;
	return text ? text : copy(now);
}

int setup_add_file(struct setup_plan *plan, const char *path, struct setup_file **ret,
		   struct gs_err *err)
{
	char *now = NULL;
	int r = root_read(plan->node->root, path, &now, err);

	if (r < 0 && r != -ENOENT)
		return r;
	plan->files = gs_grow(plan->files, plan->n, sizeof(*plan->files));
	*ret = &plan->files[plan->n++];
	**ret = (struct setup_file){ .path = gs_strdup(path), .now = now };
	(*ret)->before = without_us(setup_record_file(plan->record, path), now);
	(*ret)->after = copy((*ret)->before);
	return 0;
}

bool setup_changes(const struct setup_plan *plan)
{
	for (size_t i = 0; i < plan->n; i++)
		if (!same(plan->files[i].now, plan->files[i].after))
			return true;
	return false;
}

/* ---- Where gpushare-runtime is. */

char *setup_default_binary(const char *root)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	cleanup_free char *beside = NULL;
	char *slash;

	if (n > 0 && strcmp(root, "/") == 0) {
		self[n] = 0;
		slash = strrchr(self, '/');
		beside = gs_asprintf("%.*s/gpushare-runtime", (int)(slash - self), self);
		if (access(beside, X_OK) == 0)
			return gs_steal(beside);
	}
	return gs_strdup("/usr/bin/gpushare-runtime");
}

/* ---- Edits. */

void setup_edit(struct setup_file *file, size_t from, size_t to, const char *text)
{
	cleanup_buf struct gs_buf out = { 0 };
	const char *before = file->after ? file->after : "";

	gs_buf_add(&out, before, from);
	gs_buf_adds(&out, text);
	gs_buf_adds(&out, before + to);
	gs_strv_take(&file->old, gs_strndup(before + from, to - from));
	gs_strv_add(&file->new, text);
	free(file->after);
	file->after = gs_buf_steal(&out);
}

void setup_append(struct setup_file *file, const char *lines)
{
	size_t len = file->after ? strlen(file->after) : 0;
	bool open = len > 0 && file->after[len - 1] != '\n';
	cleanup_free char *text = gs_asprintf("%s%s", open ? "\n" : "", lines);

	setup_edit(file, len, len, text);
}

void setup_replace(struct setup_file *file, const char *text)
{
	const char *old = file->after ? file->after : "";
	size_t old_len = strlen(old), len = strlen(text), head = 0, tail = 0;

	if (strcmp(old, text) == 0)
		return;
	while (head < old_len && head < len && old[head] == text[head])
		head++;
	while (head > 0 && old[head - 1] != '\n')
		head--;
	while (tail < old_len - head && tail < len - head &&
	       old[old_len - 1 - tail] == text[len - 1 - tail])
		tail++;
	while (tail > 0 && tail < old_len && old[old_len - tail - 1] != '\n')
		tail--;
	{
		cleanup_free char *middle = gs_strndup(text + head, len - tail - head);

		setup_edit(file, head, old_len - tail, middle);
	}
}

char *setup_unedit(const char *text, const struct gs_strv *old, const struct gs_strv *new)
{
	cleanup_free char *now = gs_strdup(text);

	for (size_t i = new->n; i-- > 0;) {
		const char *at = *new->v[i] ? strstr(now, new->v[i]) : NULL;
		char *next;

		if (!at || strstr(at + 1, new->v[i]))
			return NULL;
		next = gs_asprintf("%.*s%s%s", (int)(at - now), now, old->v[i],
				   at + strlen(new->v[i]));
		free(now);
		now = next;
	}
	return new->n ? gs_steal(now) : NULL;
}

/* ---- TOML. */

int setup_parse(const struct setup_file *file, struct toml *ret, struct gs_err *err)
{
	const char *text = file->after ? file->after : "";
	int r = toml_parse(text, strlen(text), ret, err);

	return r < 0 ? gs_err_prefix(err, "%s", file->path) : 0;
}

int setup_set(struct setup_file *file, const char *table, const char *key, const char *value,
	      struct gs_err *err)
{
	cleanup_toml struct toml doc = { 0 };
	cleanup_free char *path = gs_asprintf("%s.%s", table, key);
	cleanup_free char *line = gs_asprintf("%s = %s\n", key, value);
	cleanup_free char *lines = gs_asprintf(SETUP_BEGIN "[%s]\n%s" SETUP_END, table, line);
	const struct toml_item *item, *head;
	cleanup_free char *text = NULL;
	int r = setup_parse(file, &doc, err);

	if (r < 0)
		return r;
	item = toml_find(&doc, path);
	head = toml_find(&doc, table);
	if (toml_is(&doc, path, value))
		return 0;
	if ((item && item->inside) || (head && head->type != TOML_TABLE))
		return gs_err_set(err, EINVAL,
				  "%s: %s stands in an inline table; write that as [%s] first",
				  file->path, path, table);
	if (item) { /* its whole lines, as an undo looks for a text that stands there once */
		text = gs_asprintf("%.*s%s%.*s", (int)(item->from - item->line),
				   doc.text + item->line, value, (int)(item->end - item->to),
				   doc.text + item->to);
		setup_edit(file, item->line, item->end, text);
	} else if (head) {
		text = gs_asprintf(SETUP_BEGIN "%s" SETUP_END, line);
		setup_edit(file, head->end, head->end, text);
	} else {
		setup_append(file, lines);
	}
	return 0;
}
