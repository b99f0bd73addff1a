/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node's cards, as the vendors' inventories tell them: run_dir/cards.json (0600), written by
 * the agent whenever something of it changes, under a temporary name and renamed.
 *
 *   {"v":1,"cards":[
 *    {"name":NAME,"vendor":VENDOR,"id":ID,"uuid":UUID,"index":N,"pci":ADDRESS,
 *     "select":[VALUE,...],
 *     "nodes":[{"path":PATH,"type":"c","major":N,"minor":N,"own":B,"hook":B,"revocable":B},...],
 *     "settle_ms":N},
 *    ...]}
 *
 * A slice of a card is a card of its own; its "pci" is that of the whole one, which is not listed
 * then.
 *
 * name: unique on the node, and usable as a file's name (run_dir/lent/<name>). vendor: the name of
 * the catalogue's entry. id: as the kubelet knows it. uuid, index, pci: absent where they are not
 * told. select: the values that name the card in the vendor's selecting variable, the best one
 * first; empty where there is no such variable. nodes: with numbers read from the nodes themselves;
 * own: it is this card's alone, otherwise all cards of the vendor, or all slices of the card, share
 * it; hook: the kernel module watches it; revocable: mappings of it can be taken away. settle_ms:
 * how long after the last close the card's memory may still be in use.
 */
#ifndef GPUSHARE_CARDS_H
#define GPUSHARE_CARDS_H

#define GS_CARDS_VERSION 1
#define GS_CARDS_FILE "cards.json" /* in run_dir */
#define GS_CARDS_MAX (4 * 1024 * 1024)

#endif
