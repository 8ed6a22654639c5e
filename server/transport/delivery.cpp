// SPDX-License-Identifier: Apache-2.0
#include "server/transport/delivery.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>

namespace backtrail::server {

bool is_delivered(int socket) {
  int unsent = 0;
  int unread = 0;
  return ::ioctl(socket, SIOCOUTQ, &unsent) == 0 && unsent == 0 &&
         ::ioctl(socket, FIONREAD, &unread) == 0 && unread == 0;
}

}  // namespace backtrail::server
