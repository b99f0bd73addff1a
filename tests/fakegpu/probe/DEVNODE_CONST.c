// SPDX-License-Identifier: GPL-2.0-only
/* 6.2: ff62b8e6588f ("driver core: make struct class.devnode() take a const *"). */
#include <linux/device.h>

char *fg_probe(const struct device *dev, umode_t *mode);
extern struct class fg_class;

struct class fg_class = {
	.devnode = fg_probe,
};
