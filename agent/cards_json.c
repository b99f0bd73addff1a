// SPDX-License-Identifier: Apache-2.0
/* Writes run_dir/cards.json. */
#include <fcntl.h>
#include <string.h>

#include "agent/cards_json.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/kmsg.h"
#include "gpushare/cards.h"

static void add_text(struct gs_buf *out, const char *key, const char *value)
{
	if (!value)
		return;
	gs_buf_addf(out, ",\"%s\":", key);
	gs_buf_add_json(out, value);
}

static void add_node(struct gs_buf *out, const struct card_node *node)
{
	gs_buf_adds(out, "{\"path\":");
	gs_buf_add_json(out, node->path);
	gs_buf_addf(out, ",\"type\":\"c\",\"major\":%u,\"minor\":%u,\"own\":%s,\"hook\":%s",
		    gs_kdev_major(node->dev), gs_kdev_minor(node->dev),
		    node->own ? "true" : "false", node->hook ? "true" : "false");
	gs_buf_addf(out, ",\"revocable\":%s}", node->revocable ? "true" : "false");
}

static void add_card(struct gs_buf *out, const struct card *card)
{
	gs_buf_adds(out, "{\"name\":");
	gs_buf_add_json(out, card->name);
	add_text(out, "vendor", card->vendor);
	add_text(out, "id", card->id);
	add_text(out, "uuid", card->uuid);
	if (card->index >= 0)
		gs_buf_addf(out, ",\"index\":%d", card->index);
	add_text(out, "pci", card->pci);
	gs_buf_adds(out, ",\"select\":[");
	for (size_t i = 0; i < card->select.n; i++) {
		gs_buf_adds(out, i ? "," : "");
		gs_buf_add_json(out, card->select.v[i]);
	}
	gs_buf_adds(out, "],\"nodes\":[");
	for (size_t i = 0; i < card->n_nodes; i++) {
		gs_buf_adds(out, i ? "," : "");
		add_node(out, &card->nodes[i]);
	}
	gs_buf_addf(out, "],\"settle_ms\":%u}", card->settle_ms);
}

void cards_json_text(const struct cards *cards, struct gs_buf *out)
{
	gs_buf_addf(out, "{\"v\":%d,\"cards\":[", GS_CARDS_VERSION);
	for (size_t i = 0; i < cards->n; i++) {
		gs_buf_adds(out, i ? ",\n" : "\n");
		add_card(out, &cards->v[i]);
	}
	gs_buf_adds(out, "]}\n");
}

int inventory_cards_json(const struct cards *cards, const char *run_dir, struct gs_err *err)
{
	cleanup_buf struct gs_buf text = { 0 };
	cleanup_close int dirfd = -1;
	cleanup_free char *old = NULL;
	size_t len;

	cards_json_text(cards, &text);
	dirfd = gs_dir_make(run_dir, NULL, err);
	if (dirfd < 0)
		return dirfd;
	if (gs_file_read(dirfd, GS_CARDS_FILE, O_NOFOLLOW, GS_CARDS_MAX, &old, &len, NULL, NULL) ==
		    0 &&
	    len == text.len && memcmp(old, text.data, len) == 0)
		return 0;
	return gs_file_publish(dirfd, GS_CARDS_FILE, text.data, text.len, err);
}
