// SPDX-License-Identifier: Apache-2.0
/* gpusharectl top: what every card does, again and again; of this node or of all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/proc.h"
#include "common/xalloc.h"
#include "ctl/cards.h"
#include "ctl/ctl.h"
#include "ctl/inspect.h"
#include "ctl/inspect_card.h"
#include "ctl/screen.h"
#include "ctl/table.h"

/* An agent that hangs is not waited for as long as by inspect: the next look comes soon. */
#define AGENT_MS 3000
#define INTERVAL_MAX_MS (3600 * 1000)
#define COUNT_MAX 1000000
#define BAR 10
/* What stands above the cards, and below them. */
#define HEAD_LINES 4

struct call {
	const struct ctl_verb *verb;
	bool cluster;
	struct view_kubectl kubectl;
	struct gs_config config;
	uint64_t interval_ms;
	unsigned long count; /* of looks; 0: for ever */
};

/* What is shown. */
struct frame {
	char *title, *summary, *trouble;
	struct gs_strv lines; /* the heading and a line for each card */
	const char **paint; /* of each line */
};

static void frame_free(struct frame *frame)
{
	free(frame->title);
	free(frame->summary);
	free(frame->trouble);
	gs_strv_free(&frame->lines);
	free(frame->paint);
	*frame = (struct frame){ 0 };
}
#define cleanup_frame __attribute__((cleanup(frame_free)))

/* ---- A frame. */

static const char *paint_of(const struct inspect_card *of)
{
	static const char *const paints[][2] = {
		{ "lent", "32" },	  { "lending", "32" }, { "returning", "1;31" },
		{ "quarantine", "1;31" }, { "idle", "36" },    { "unknown", "33" },
		{ "free", "2" },
	};
	const char *state = picture_state(&of->node->pic, of->card);

	if (of->node->stale)
		return "2;33";
	for (size_t i = 0; i < GS_ARRAY_SIZE(paints); i++)
		if (strcmp(state, paints[i][0]) == 0)
			return paints[i][1];
	return NULL;
}

static char *bar_of(const struct pic_card *card)
{
	cleanup_free char *busy = card_busy(card);
	char bar[BAR + 1];

	if (!busy)
		return NULL;
	for (unsigned int i = 0; i < BAR; i++)
		bar[i] = card->busy * BAR > i ? '#' : '.';
	bar[BAR] = '\0';
	return gs_asprintf("%s %s", bar, busy);
}

/* The busiest first; else as they came, which is by node and card. */
static int by_load(const void *a, const void *b)
{
	const struct inspect_card *x = a, *y = b;

	if (x->card->busy != y->card->busy)
		return x->card->busy > y->card->busy ? -1 : 1;
	return x->card < y->card ? -1 : x->card > y->card;
}

static void add_row(struct ctl_table *table, const struct inspect_card *of, bool cluster)
{
	const struct picture *pic = &of->node->pic;
	cleanup_free char *bar = bar_of(of->card), *memory = card_memory(of->card);
	char since[GS_DURATION_MAX];

	if (cluster) {
		cleanup_free char *node = inspect_node(of->node);

		ctl_table_add(table, node);
	}
	ctl_table_add(table, of->card->name);
	ctl_table_add(table, picture_state(pic, of->card));
	ctl_table_add(table, card_since(pic, of->card, since));
	ctl_table_add(table, bar);
	ctl_table_add(table, memory);
	for (enum part part = HOLDS; part < N_PARTS; part++) {
		cleanup_free char *names = card_names(pic, of->card, part);

		ctl_table_add(table, names);
	}
}

static void add_cards(const struct view *view, struct frame *frame)
{
	static const char *const heading[] = { "NODE",	  "CARD",	 "STATE",
					       "SINCE",	  "BUSY",	 "MEMORY",
					       "HELD-BY", "SHARED-WITH", "BORROWED-BY" };
	cleanup_table struct ctl_table table = { 0 };
	cleanup_free struct inspect_card *cards = NULL;
	size_t n;

	for (size_t i = view->cluster ? 0 : 1; i < GS_ARRAY_SIZE(heading); i++) {
		ctl_table_add(&table, heading[i]);
		table.columns++;
	}
	cards = inspect_choose(view, NULL, &n);
	if (n)
		qsort(cards, n, sizeof(*cards), by_load);
	frame->paint = gs_calloc(n + 1, sizeof(*frame->paint));
	frame->paint[0] = "7";
	for (size_t i = 0; i < n; i++) {
		add_row(&table, &cards[i], view->cluster);
		frame->paint[i + 1] = paint_of(&cards[i]);
	}
	ctl_table_lines(&table, &frame->lines);
}

static void make_frame(const struct view *view, struct frame *frame)
{
	char host[256] = "", clock[16];
	time_t now = time(NULL);
	struct tm tm;

	frame_free(frame);
	(void)gethostname(host, sizeof(host) - 1);
	(void)localtime_r(&now, &tm);
	(void)strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	frame->title = gs_asprintf("%s top - %s, %s", ctl_name,
				   view->cluster ? "cards of all nodes" : host, clock);
	frame->summary = view_summary(view);
	/* the first stands for all: inspect has room for them */
	if (view->wrong.n)
		frame->trouble = gs_strdup(view->wrong.v[0]);
	add_cards(view, frame);
}

/* ---- Showing it. */

static void print_frame(const struct frame *frame)
{
	puts(ctl_printable(frame->title));
	puts(ctl_printable(frame->summary));
	if (frame->trouble)
		puts(ctl_printable(frame->trouble));
	(void)putchar('\n');
	for (size_t i = 0; i < frame->lines.n; i++)
		puts(frame->lines.v[i]);
	(void)fflush(stdout);
}

/* A page that is filled from above. */
struct page {
	struct gs_buf text;
	unsigned int columns, lines; /* lines: what is left */
	bool colors;
};

static void add_line(struct page *page, const char *text, const char *paint)
{
	if (!page->lines)
		return;
	page->lines--;
	screen_paint(&page->text, text, page->columns, page->colors ? paint : NULL);
}

static void draw_frame(const struct frame *frame, const char *trouble)
{
	const char *no_color = getenv("NO_COLOR");
	struct page page = { .colors = !no_color || !*no_color };
	size_t n = frame->lines.n, room, shown;

	screen_size(&page.columns, &page.lines);
	room = page.lines > HEAD_LINES ? page.lines - HEAD_LINES : 0;
	/* the last one tells how many are missing */
	shown = n <= room ? n : room ? room - 1 : 0;
	add_line(&page, frame->title, "1");
	add_line(&page, frame->summary, NULL);
	add_line(&page, trouble ? trouble : frame->trouble ? frame->trouble : "", "1;31");
	for (size_t i = 0; i < shown; i++)
		add_line(&page, frame->lines.v[i], frame->paint[i]);
	if (shown < n) {
		cleanup_free char *more = gs_asprintf(
			"... and %zu more: a larger window, or inspect", n - (shown ? shown : 1));

		add_line(&page, more, NULL);
	}
	add_line(&page, "q: end, any other key: look now", "2");
	screen_show(&page.text);
	gs_buf_free(&page.text);
}

/* ---- Looking. */

static int look(struct call *call, struct frame *frame, struct gs_err *err)
{
	cleanup_view struct view view = { 0 };
	int r = call->cluster ? view_of_cluster(&call->kubectl, &view, err) :
				view_of_agent(&call->config, AGENT_MS, &view, err);

	if (r == 0)
		make_frame(&view, frame);
	return r;
}

/* Until the next look; false: it is enough. */
static bool wait_for_key(const struct call *call, const struct frame *frame, const char *trouble)
{
	uint64_t end = gs_boottime_ms() + call->interval_ms, now;

	draw_frame(frame, trouble);
	while ((now = gs_boottime_ms()) < end) {
		int key = screen_key((unsigned int)(end - now));

		if (key < 0 || key == 'q' || key == 'Q')
			return false;
		if (key > 0)
			return true;
		/* the window may have another size */
		draw_frame(frame, trouble);
	}
	return true;
}

static int run_screen(struct call *call, struct frame *frame)
{
	struct gs_err err = { 0 };
	int r = screen_open(&err);

	if (r < 0)
		return ctl_failed(&err);
	/* what kubectl says now goes to where there is room for it */
	call->kubectl.quiet = true;
	while (wait_for_key(call, frame, r < 0 ? err.msg : NULL)) {
		if (call->count && --call->count == 0)
			break;
		r = look(call, frame, &err);
	}
	screen_close();
	return CTL_OK;
}

static int run_lines(struct call *call, struct frame *frame)
{
	struct gs_err err = { 0 };

	if (!call->count)
		call->count = 1;
	for (;;) {
		print_frame(frame);
		if (--call->count == 0)
			return CTL_OK;
		(void)usleep((useconds_t)(call->interval_ms * 1000));
		if (look(call, frame, &err) < 0)
			return ctl_failed(&err);
		(void)putchar('\n');
	}
}

/* ---- The verb. */

static int read_number(const struct call *call, const char *text, unsigned long *ret)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || n < 1 || n > COUNT_MAX)
		return ctl_misused(call->verb, "--count takes a number from 1 to %d", COUNT_MAX);
	*ret = n;
	return CTL_OK;
}

static int read_interval(struct call *call, const char *text)
{
	/* a look asks all of an agent, or all of an API server */
	uint64_t least = call->cluster ? 2000 : 500;
	struct gs_err err = { 0 };

	if (gs_duration_ms(text, INTERVAL_MAX_MS, &call->interval_ms, &err) < 0)
		return ctl_misused(call->verb, "--interval: %s", err.msg);
	if (call->interval_ms < least)
		return ctl_misused(call->verb, "--interval is at least %s",
				   call->cluster ? "2s" : "500ms");
	return CTL_OK;
}

static int read_options(int argc, char **argv, struct call *call, bool *ret_help)
{
	static const struct option longs[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "interval", required_argument, NULL, 'i' },
		{ "count", required_argument, NULL, 'c' },
		INSPECT_CLUSTER_OPTIONS,
		{ NULL, 0, NULL, 0 },
	};
	static const struct option plain[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "interval", required_argument, NULL, 'i' },
		{ "count", required_argument, NULL, 'c' },
		{ NULL, 0, NULL, 0 },
	};
	int opt, r = CTL_OK;

	while (r == CTL_OK &&
	       (opt = ctl_getopt(call->verb, argc, argv, call->cluster ? ":hn:" : ":h",
				 call->cluster ? longs : plain)) != -1) {
		if (inspect_cluster_option(opt, &call->kubectl))
			continue;
		if (opt == 'h')
			*ret_help = true;
		else if (opt == 'i')
			r = read_interval(call, optarg);
		else if (opt == 'c')
			r = read_number(call, optarg, &call->count);
		else
			r = CTL_USAGE;
	}
	if (r == CTL_OK && optind < argc)
		r = ctl_misused(call->verb, "what is %s?", argv[optind]);
	return r;
}

static int run_with(struct call *call, int argc, char **argv)
{
	cleanup_frame struct frame frame = { 0 };
	struct gs_err err = { 0 };
	bool help = false;
	int r = read_options(argc, argv, call, &help);

	if (r != CTL_OK)
		return r;
	if (help)
		return ctl_help(call->verb);
	if (!call->cluster && ctl_load_config(&call->config) != CTL_OK)
		return CTL_FAILED;
	/* before the screen is taken: what is wrong from the first on is told as ever */
	if (look(call, &frame, &err) < 0)
		return ctl_failed(&err);
	return screen_there() ? run_screen(call, &frame) : run_lines(call, &frame);
}

static int run(const struct ctl_verb *verb, bool cluster, int argc, char **argv)
{
	struct call call = {
		.verb = verb,
		.cluster = cluster,
		.kubectl.namespace = INSPECT_NAMESPACE,
		.interval_ms = cluster ? 10000 : 2000,
	};
	int r = run_with(&call, argc, argv);

	gs_config_free(&call.config);
	return r;
}

static int run_node(int argc, char **argv)
{
	return run(&ctl_top, false, argc, argv);
}

static int run_cluster(int argc, char **argv)
{
	return run(&ctl_cluster_top, true, argc, argv);
}

#define HOW                                                                                  \
	"Where stdout is a terminal it takes it, the busiest card first, until q or\n"       \
	"Ctrl-C; any other key looks at once. The environment variable NO_COLOR, with any\n" \
	"value, leaves the colours out. Elsewhere it prints one look and ends.\n"

const struct ctl_verb ctl_top = {
	.name = "top",
	.summary = "what each card does, again and again",
	.help = "usage: gpusharectl top [--interval TIME] [--count N]\n"
		"\n"
		"Shows what each card of this node does and who has it, again and again.\n" HOW "\n"
		"  --interval TIME  from one look to the next, at least 500ms; otherwise 2s\n"
		"  --count N        so many looks\n"
		"\n"
		"Example: gpusharectl top --interval 5s\n",
	.run = run_node,
};

const struct ctl_verb ctl_cluster_top = {
	.name = "top",
	.summary = "what each card of the cluster does, again and again",
	.help = "usage: kubectl gpushare top [--interval TIME] [--count N] [--node NODE]\n"
		"\n"
		"Shows what each card of the cluster does and who has it, again and again, as\n"
		"agents tell it: at most every ten seconds, and of load every minute.\n" HOW "\n"
		"  --interval TIME  from one look to the next, at least 2s; otherwise 10s\n"
		"  --count N        so many looks\n"
		"  --node NODE      that node alone\n"
		"  -n, --namespace NAMESPACE\n"
		"                   where agents write; otherwise gpushare-system\n"
		"  --context NAME, --kubeconfig FILE\n"
		"                   as of kubectl, which has to be in PATH\n"
		"\n"
		"Example: kubectl gpushare top --node gpu-7\n",
	.run = run_cluster,
};
