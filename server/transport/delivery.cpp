// SPDX-License-Identifier: Apache-2.0
#include "server/transport/delivery.hpp"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace backtrail::server {

bool is_delivered(int socket) {
  int unsent = 0;
  int unread = 0;
  return ::ioctl(socket, SIOCOUTQ, &unsent) == 0 && unsent == 0 &&
         ::ioctl(socket, FIONREAD, &unread) == 0 && unread == 0;
}

int bytes_on_their_way(int socket) {
  int protocol = 0;
  socklen_t size = sizeof protocol;
  int unsent = 0;
  const bool is_tcp = ::getsockopt(socket, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 &&
                      protocol == IPPROTO_TCP;
  return is_tcp && ::ioctl(socket, SIOCOUTQ, &unsent) == 0 ? unsent : 0;
}

}  // namespace backtrail::server
