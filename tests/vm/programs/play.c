// SPDX-License-Identifier: Apache-2.0
/*
 * play: plays scenes with the kernel module and the stand-in card, from stdin, a step a line:
 *
 *	play [SUMS] <SCENES     prints a TAP line for each scene; SUMS gets "tests=N failures=N"
 *
 *	test NAME               a scene begins, the one before ends: all that it made is taken away
 *	skip REASON             counts it as skipped
 *	holding H NODE... [lend_after=MS] [hold_max=MS] [settle=MS]     (lend_after 60000)
 *	times H [lend_after=MS] ...
 *	member A H,... [cgroup] makes the actor A if there is none, and a watch of that name
 *	borrower A H,... [cgroup] [kill]
 *	outsider A              an actor without a watch
 *	spawn A.W               a worker: forked from A now, in the same container
 *	unwatch A, drop H
 *	idle H, lent H          waits until it is idle; and lends it
 *	lend H|withdraw H|release H     with the number that the state has, or
 *	lend H kept|release H kept      that it had at `keep H`
 *	hook NODE..., unhook NODE..., rmmod MODULE, insmod FILE
 *	agent up|down|stop|cont, beat   the agent is a process that beats its heart; beat is ours
 *	param NAME VALUE        of fakegpu
 *	state H STATE, files H N, held H N, opened A N, revoked A N     waited for
 *	total KEY N             by how much that sum of kmod status grew in this scene; waited for
 *	saw WHO STEP...         all events of holding, watch or "-" since the last saw:
 *	                        STATE/CAUSE drained revoked:A[!] released:N stolen:A agent:N hooked
 *	heard                   takes them all
 *	numbered H              the event of its state has the number that LEND or RELEASE need
 *	toucher H A NODE KIND   whom the last touch event of H named
 *	gap WHO STEP STEP MIN [MAX]     milliseconds between the last two such events of this scene;
 *	                        MAX is of a kernel that does not look for bugs
 *	log N REGEX             so many lines of the card's log of this scene match
 *	before REGEX REGEX      the first match of one lies before that of the other
 *	kill A [SIGNAL], freeze A, thaw A, wait MS
 *	trace A B               A will hold B when that exits, as a debugger may
 *	gone A                  waits until its process is dead
 *	A ORDER...              see play/actor.h; waits for the end of it
 *	& A ORDER...            does not
 *	A held                  that order is not over
 *	A done                  waits until it is
 *	give A SLOT B SLOT      sends an open file from one to the other
 *
 * !ERRNO before a step: it must fail with that. Nodes: "0" is /dev/fakegpu0, "ctl", "uvm"; "v0" is
 * the one of a second driver.
 */
#include <ctype.h>

#include "tests/vm/programs/play/stage.h"

static char scene[200];
static uint64_t began;
static bool failed, skipped;
static bool broken; /* what a scene made could not be taken away */
static unsigned int line_number, tests, failures;

/* ---- Scenes. */
static int clear_kmod(void)
{
	uint64_t end = now_ms() + PATIENCE_MS;
	size_t left;

	do {
		cleanup_kstate struct gs_kstate state = { 0 };

		if (gs_klink_dump(kmod, &state, &err) < 0)
			return err.code;
		left = 0;
		for (size_t i = 0; i < state.n_watches; i++)
			left += gs_klink_watch_del(kmod, state.watches[i].name, &err) < 0;
		for (size_t i = 0; i < state.n_holdings; i++) {
			const struct gs_kholding *h = &state.holdings[i];

			(void)gs_klink_withdraw(kmod, h->name, &err);
			(void)gs_klink_release(kmod, h->name, h->seq, &err);
			left += gs_klink_holding_del(kmod, h->name, &err) < 0;
		}
		if (left)
			hear(10);
	} while (left && now_ms() < end);
	return left ? wrong(ETIMEDOUT, "not all could be taken away: %s", err.msg) : 0;
}

static void end_actors(void)
{
	for (size_t i = 0; i < n_actors; i++) {
		if (!actors[i].worker)
			(void)freeze(actors[i].name, false);
		if (actors[i].pid > 1)
			(void)kill(actors[i].pid, SIGKILL);
	}
	for (size_t i = 0; i < n_actors; i++) {
		cleanup_free char *path = cgroup_path(actors[i].name, "");

		(void)close(actors[i].sock);
		if (actors[i].worker)
			continue;
		/* Of a container in a cgroup more than its first process may be left. */
		(void)cgroup_write(actors[i].name, "/cgroup.kill", "1");
		(void)waitpid(actors[i].pid, NULL, 0);
		for (int tries = 0; rmdir(path) < 0 && errno == EBUSY && tries < 500; tries++)
			sleep_ms(2);
	}
	n_actors = 0;
}

static void fail_scene(const char *line)
{
	if (!failed) {
		failures++;
		printf("not ok - %s\n", scene);
		note(scene);
	}
	failed = true;
	printf("# line %u: %s\n#   %s (%s)\n# events:\n", line_number, line, err.msg,
	       strerrorname_np(err.code) ? strerrorname_np(err.code) : "?");
	tell_events();
}

static void end_scene(void)
{
	static const char *const params[] = { "open_fail", "open_ms", "close_ms", "free_delay_ms" };
	char *up[] = { (char *)(uintptr_t) "agent", (char *)(uintptr_t) "up", NULL };

	if (!*scene)
		return;
	for (size_t i = 0; i < GS_ARRAY_SIZE(params); i++)
		(void)do_param(
			(char *[]){ NULL, (char *)(uintptr_t)params[i], (char *)(uintptr_t) "0" });
	(void)write_file(LOG "wake", "1");
	if (agent)
		(void)kill(agent, SIGCONT);
	end_actors();
	broken = clear_kmod() != 0;
	/* Our own heartbeat ends with our link. */
	gs_klink_close(kmod);
	broken |= gs_klink_open(&kmod, &err) < 0 || do_agent(up);
	if (broken)
		fail_scene("the end; there are no more scenes");
	if (!failed && !skipped) {
		printf("ok - %s\n", scene);
		note(scene);
	}
	if (now_ms() - began > 1000)
		printf("# %llu ms\n", (unsigned long long)(now_ms() - began));
	tests++;
	n_holdings = 0;
	*scene = 0;
	(void)fflush(stdout);
}

static int do_test(char **argv)
{
	end_scene();
	if (broken)
		return 0;
	failed = skipped = false;
	for (argv++; *argv; argv++) {
		size_t len = strlen(scene);

		(void)snprintf(scene + len, sizeof(scene) - len, "%s%s", len ? " " : "", *argv);
	}
	catch_up();
	n_events = 0;
	began = now_ms();
	(void)write_file(LOG "clear", "1");
	return gs_klink_status(kmod, &at_begin, &err) < 0 ? err.code : 0;
}

static int do_skip(char **argv)
{
	printf("ok - %s # SKIP", scene);
	for (argv++; *argv; argv++)
		printf(" %s", *argv);
	printf("\n");
	skipped = true;
	return 0;
}

static const struct step {
	const char *name;
	int min, max; /* arguments */
	int (*run)(char **argv);
} steps[] = {
	{ "test", 1, 30, do_test },	   { "skip", 1, 30, do_skip },
	{ "holding", 2, 30, do_holding },  { "times", 2, 4, do_holding },
	{ "member", 2, 3, do_watch },	   { "borrower", 2, 4, do_watch },
	{ "outsider", 1, 2, do_outsider }, { "spawn", 1, 1, do_spawn },
	{ "unwatch", 1, 1, do_unwatch },   { "drop", 1, 1, do_drop },
	{ "idle", 1, 1, do_idle },	   { "lent", 1, 1, do_lent },
	{ "lend", 1, 2, do_lend },	   { "withdraw", 1, 1, do_withdraw },
	{ "release", 1, 2, do_release },   { "keep", 1, 1, do_keep },
	{ "hook", 1, 9, do_hook },	   { "unhook", 1, 9, do_unhook },
	{ "rmmod", 1, 1, do_rmmod },	   { "insmod", 1, 1, do_insmod },
	{ "agent", 1, 1, do_agent },	   { "beat", 0, 0, do_beat },
	{ "param", 2, 2, do_param },	   { "state", 2, 2, wait_number },
	{ "files", 2, 2, wait_number },	   { "held", 2, 2, wait_number },
	{ "opened", 2, 2, wait_number },   { "revoked", 2, 2, wait_number },
	{ "total", 2, 2, do_total },	   { "saw", 1, 30, do_saw },
	{ "heard", 0, 0, do_heard },	   { "numbered", 1, 1, do_numbered },
	{ "toucher", 4, 4, do_toucher },   { "gap", 4, 5, do_gap },
	{ "log", 2, 2, do_log },	   { "before", 2, 2, do_before },
	{ "kill", 1, 2, do_kill },	   { "freeze", 1, 1, do_freeze },
	{ "thaw", 1, 1, do_freeze },	   { "wait", 1, 1, do_wait },
	{ "trace", 2, 2, do_trace },	   { "gone", 1, 1, do_gone },
	{ "give", 4, 4, do_give },
};

static int actor_step(struct actor *a, char **argv, bool async)
{
	if (async)
		return actor_order(a, argv + 1, -1);
	if (!argv[1])
		return wrong(EINVAL, "%s shall do what?", a->name);
	if (strcmp(argv[1], "done") == 0)
		return actor_done(a, NULL);
	if (strcmp(argv[1], "held") == 0) {
		int r = actor_answer(a, HELD_MS, NULL);

		return r == 0 ? 0 : wrong(r < 0 ? ESRCH : EALREADY, r < 0 ? "dead" : "it is over");
	}
	return actor_do(a, argv + 1);
}

static int run_step(char **argv, int argc, bool async)
{
	struct actor *a = actor_find(argv[0]);

	if (a)
		return actor_step(a, argv, async);
	for (size_t i = 0; i < GS_ARRAY_SIZE(steps); i++) {
		if (strcmp(steps[i].name, argv[0]) != 0)
			continue;
		if (argc - 1 < steps[i].min || argc - 1 > steps[i].max)
			return wrong(E2BIG, "too few or too many words");
		return steps[i].run(argv);
	}
	return wrong(ENOSYS, "no such step or actor");
}

/* Words, of which one in double quotes may have blanks. */
static int split(char *line, char **argv, int max)
{
	int n = 0;

	for (;;) {
		char end = ' ';

		while (isspace((unsigned char)*line))
			line++;
		if (!*line || *line == '#' || n == max)
			break;
		if (*line == '"')
			end = *line++;
		argv[n++] = line;
		while (*line && (end == '"' ? *line != '"' : !isspace((unsigned char)*line)))
			line++;
		if (*line)
			*line++ = 0;
	}
	argv[n] = NULL;
	return n;
}

static void run_line(char *line)
{
	cleanup_free char *copy = gs_strdup(line);
	char *words[33], **argv = words, *want = NULL;
	int argc = split(line, words, 32), r;
	bool async = false;

	copy[strcspn(copy, "\n")] = 0;
	if (argc > 1 && words[0][0] == '!')
		want = words[0] + 1;
	else if (argc > 1 && strcmp(words[0], "&") == 0)
		async = true;
	argv += want || async;
	argc -= want || async;
	if (argc == 0 || ((failed || skipped) && strcmp(argv[0], "test") != 0))
		return;
	err = (struct gs_err){ 0 };
	r = run_step(argv, argc, async);
	if (want && r && strcmp(strerrorname_np(r), want) == 0)
		return;
	if (!r && !want)
		return;
	if (!r)
		(void)wrong(EPROTO, "it succeeded");
	fail_scene(copy);
}

int main(int argc, char **argv)
{
	char line[ORDER_MAX];
	FILE *sums;

	if (argc > 1 && strcmp(argv[1], "actor") == 0)
		actor_again(argv + 2);
	(void)close_range(3, ~0U, 0);
	if (gs_klink_open(&kmod, &err) < 0 || gs_kevents_open(0, &listener, &err) < 0 ||
	    do_agent((char *[]){ NULL, (char *)(uintptr_t) "up", NULL })) {
		(void)fprintf(stderr, "play: %s\n", err.msg);
		return 1;
	}
	while (!broken && fgets(line, sizeof(line), stdin)) {
		line_number++;
		run_line(line);
	}
	if (!broken)
		end_scene();
	(void)do_agent((char *[]){ NULL, (char *)(uintptr_t) "down", NULL });
	sums = argc > 1 ? fopen(argv[1], "we") : NULL;
	if (sums) {
		(void)fprintf(sums, "tests=%u failures=%u\n", tests, failures);
		(void)fclose(sums);
	}
	return failures > 0;
}
