// SPDX-License-Identifier: Apache-2.0
/* Hooks by children. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/hooker.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/proc.h"
#include "common/xalloc.h"

#define PAUSE_MIN_MS 1000
#define PAUSE_MAX_MS 60000
/* What a child prints: a number and a sentence. */
#define ANSWER_MAX 512

/* A node that was wanted, and is not hooked yet. */
struct
try {
	struct hooker *hooker;
	char *path;
	uint32_t dev;
	struct spawner_child *child; /* NULL: none runs */
	int out; /* the end of its stdout's pipe that is ours */
	uint64_t begun_ms; /* CLOCK_BOOTTIME */
	bool late; /* its deadline is over, and that was told; it may never end */
	char told[160]; /* why it was refused the last time */
	unsigned int pause_ms; /* the last one */
	uint64_t again_ms; /* when it may be tried again; 0: at once */
};

struct hooker {
	struct spawner *spawner;
	char *probe;
	unsigned int deadline_ms;
	struct hooker_ops ops;
	uv_timer_t timer;
	struct try **v;
	size_t n;
};

static void try_free(struct try *t)
{
	if (t->child)
		(void)close(t->out);
	free(t->path);
	free(t);
}

static void on_timer(uv_timer_t *timer);

/* Sets the timer for what comes first: a deadline, or the end of a pause. */
static void arm(struct hooker *hooker)
{
	uint64_t now = gs_boottime_ms(), next = UINT64_MAX;

	for (size_t i = 0; i < hooker->n; i++) {
		const struct try *t = hooker->v[i];
		uint64_t at = !t->child ? t->again_ms :
			      t->late	? 0 :
					  t->begun_ms + hooker->deadline_ms;

		if (at && at < next)
			next = at;
	}
	if (next == UINT64_MAX)
		(void)uv_timer_stop(&hooker->timer);
	else
		(void)uv_timer_start(&hooker->timer, on_timer, next > now ? next - now : 1, 0);
}

static void refuse(struct try *t, const struct gs_err *err)
{
	t->pause_ms = t->pause_ms ? t->pause_ms * 2 : PAUSE_MIN_MS;
	if (t->pause_ms > PAUSE_MAX_MS)
		t->pause_ms = PAUSE_MAX_MS;
	t->again_ms = gs_boottime_ms() + t->pause_ms;
	if (strncmp(t->told, err->msg, sizeof(t->told) - 1) == 0)
		return;
	(void)snprintf(t->told, sizeof(t->told), "%.*s", (int)sizeof(t->told) - 1, err->msg);
	t->hooker->ops.refused(t->path, err, t->hooker->ops.arg);
}

static void on_timer(uv_timer_t *timer)
{
	struct hooker *hooker = timer->data;
	uint64_t now = gs_boottime_ms();
	bool again = false;

	for (size_t i = 0; i < hooker->n; i++) {
		struct try *t = hooker->v[i];
		struct gs_err err = { 0 };

		if (t->child && !t->late && now >= t->begun_ms + hooker->deadline_ms) {
			t->late = true;
			spawner_kill(hooker->spawner, t->child);
			gs_err_set(&err, ETIMEDOUT, "its driver did not open it within %u ms",
				   hooker->deadline_ms);
			refuse(t, &err);
		} else if (!t->child && t->again_ms && now >= t->again_ms) {
			t->again_ms = 0;
			again = true;
		}
	}
	arm(hooker);
	if (again)
		hooker->ops.again(hooker->ops.arg);
}

/* What the child has printed: "0", or "-ERRNO SENTENCE". */
static int read_answer(int fd, int status, struct gs_err *err)
{
	char text[ANSWER_MAX], *end, *newline;
	ssize_t n = read(fd, text, sizeof(text) - 1);
	long r;

	text[n > 0 ? n : 0] = '\0';
	newline = strchr(text, '\n');
	if (newline)
		*newline = '\0';
	r = strtol(text, &end, 10);
	if (WIFSIGNALED(status))
		return gs_err_set(err, EIO, "gpushare-probe died of signal %d", WTERMSIG(status));
	if (!newline || end == text || r > 0 || r < -4095 || WEXITSTATUS(status))
		return gs_err_set(err, EIO,
				  "gpushare-probe ended with status %d, without an answer",
				  WEXITSTATUS(status));
	if (r < 0)
		return gs_err_set(err, (int)-r, "%s", *end ? end + 1 : strerror((int)-r));
	return 0;
}

static void forget(struct try *t)
{
	struct hooker *hooker = t->hooker;
	size_t i = 0;

	while (hooker->v[i] != t)
		i++;
	hooker->v[i] = hooker->v[--hooker->n];
	try_free(t);
}

static void ended(int status, void *arg)
{
	struct try *t = arg;
	struct hooker *hooker = t->hooker;
	struct gs_err err = { 0 };
	bool late = t->late;
	int r = read_answer(t->out, status, &err);

	(void)close(t->out);
	t->child = NULL;
	t->late = false;
	/* an answer that was too late is one, if it is good */
	if (r == 0)
		forget(t);
	else if (!late)
		refuse(t, &err);
	arm(hooker);
	if (r == 0)
		hooker->ops.added(hooker->ops.arg);
}

static int start(struct try *t, const struct hook_wish *wish, struct gs_err *err)
{
	cleanup_buf struct gs_buf passive = { 0 };
	cleanup_close int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char dev[16];
	const char *const argv[] = { t->hooker->probe, "hook", wish->path, dev,
				     wish->vendor,     NULL,   NULL,	   NULL };
	const char *args[GS_ARRAY_SIZE(argv)];
	int fds[2], r;

	(void)snprintf(dev, sizeof(dev), "%" PRIu32, wish->dev);
	for (size_t i = 0; i < wish->n_passive; i++)
		gs_buf_addf(&passive, "%s%" PRIu32, i ? "," : "", wish->passive[i]);
	memcpy(args, argv, sizeof(args));
	if (passive.len || wish->revocable)
		args[5] = passive.len ? passive.data : "";
	if (wish->revocable)
		args[6] = "revocable";
	if (in < 0 || pipe2(fds, O_CLOEXEC) < 0)
		return gs_err_errno(err, errno, "pipe");
	/* ours alone: whatever the child leaves behind may keep the other end open */
	(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
	r = spawner_run(t->hooker->spawner, args, in, fds[1], ended, t, &t->child, err);
	(void)close(fds[1]);
	if (r < 0) {
		(void)close(fds[0]);
		t->child = NULL;
		return r;
	}
	t->out = fds[0];
	t->begun_ms = gs_boottime_ms();
	return 0;
}

static struct try *find(struct hooker *hooker, const struct hook_wish *wish)
{
	struct try *t;

	for (size_t i = 0; i < hooker->n; i++)
		if (hooker->v[i]->dev == wish->dev && strcmp(hooker->v[i]->path, wish->path) == 0)
			return hooker->v[i];
	t = gs_calloc(1, sizeof(*t));
	t->hooker = hooker;
	t->path = gs_strdup(wish->path);
	t->dev = wish->dev;
	hooker->v = gs_grow(hooker->v, hooker->n, sizeof(struct try *));
	hooker->v[hooker->n++] = t;
	return t;
}

void hooker_want(struct hooker *hooker, const struct hook_wish *wish)
{
	struct try *t = find(hooker, wish);
	struct gs_err err = { 0 };

	if (t->child || t->again_ms > gs_boottime_ms())
		return;
	if (start(t, wish, &err) < 0)
		refuse(t, &err);
	arm(hooker);
}

void hooker_forgive(struct hooker *hooker)
{
	for (size_t i = 0; i < hooker->n; i++)
		hooker->v[i]->pause_ms = hooker->v[i]->again_ms = 0;
	arm(hooker);
}

struct hooker *hooker_new(uv_loop_t *loop, struct spawner *spawner, const char *probe,
			  unsigned int deadline_ms, const struct hooker_ops *ops)
{
	struct hooker *hooker = gs_calloc(1, sizeof(*hooker));

	hooker->spawner = spawner;
	hooker->probe = gs_strdup(probe);
	hooker->deadline_ms = deadline_ms;
	hooker->ops = *ops;
	(void)uv_timer_init(loop, &hooker->timer);
	hooker->timer.data = hooker;
	return hooker;
}

/* The spawner has killed the children, or does so when it is freed, and tells no end any more. */
static void on_close(uv_handle_t *handle)
{
	struct hooker *hooker = handle->data;

	for (size_t i = 0; i < hooker->n; i++)
		try_free(hooker->v[i]);
	free(hooker->v);
	free(hooker->probe);
	free(hooker);
}

void hooker_free(struct hooker *hooker)
{
	if (hooker)
		uv_close((uv_handle_t *)&hooker->timer, on_close);
}
