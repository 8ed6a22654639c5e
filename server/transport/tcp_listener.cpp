// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include <fmt/format.h>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>

#include "server/session/notices.hpp"
#include "server/transport/listener.hpp"
#include "server/transport/port_owner.hpp"
#include "server/transport/socket_accept.hpp"

namespace backtrail::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

std::string display(const CommSpec& comm) {
  return comm.host.find(':') == std::string::npos ? fmt::format("{}:{}", comm.host, comm.port)
                                                  : fmt::format("[{}]:{}", comm.host, comm.port);
}

/// Returns the address to bind, IPv4 if the name has both kinds: gdb tries every address of a name.
Explained<tcp::endpoint> resolve(asio::io_context& io, const CommSpec& comm) {
  // RFC 6761 section 6.3: localhost is the loopback address. A small container may lack /etc/hosts.
  if (comm.host == "localhost") return tcp::endpoint{asio::ip::address_v4::loopback(), comm.port};
  tcp::resolver resolver{io};
  error_code error;
  const auto found =
      resolver.resolve(comm.host, std::to_string(comm.port),
                       tcp::resolver::numeric_service | tcp::resolver::passive, error);
  if (error || found.empty()) {
    return explain(fmt::format("cannot listen on {}: host '{}' is not known ({})", display(comm),
                               comm.host, error.message()));
  }
  for (const auto& entry : found) {
    if (entry.endpoint().address().is_v4()) return entry.endpoint();
  }
  return found.begin()->endpoint();
}

std::string bind_failure(const CommSpec& comm, const error_code& error) {
  const std::string what = fmt::format("cannot listen on {}: ", display(comm));
  if (error == asio::error::address_in_use) {
    const auto owner = find_port_owner(comm.port);
    // gdb's front ends look for the first sentence.
    return fmt::format(
        "Can't bind address: Address already in use.\n"
        "{}address already in use{}; stop that, choose another port, or use port 0 for any free "
        "one",
        what, owner ? " by " + *owner : "");
  }
  if (error == asio::error::access_denied) {
    return what + "permission denied; ports below 1024 need root or CAP_NET_BIND_SERVICE";
  }
  if (error == boost::system::errc::address_not_available) {
    return what + "this machine has no such address; 0.0.0.0 stands for all it has";
  }
  return what + error.message();
}

class TcpListener final : public Listener {
 public:
  TcpListener(tcp::acceptor acceptor, std::uint16_t port)
      : acceptor_{std::move(acceptor)}, port_{port} {}
  ~TcpListener() override { TcpListener::close(); }

  void announce() const override { notices::listening_on_port(port_); }
  void accept(AcceptHandler handler) override {
    accept_client(acceptor_, std::move(handler), [](tcp::socket& socket) {
      error_code ignored;
      socket.set_option(tcp::no_delay{true}, ignored);
      socket.set_option(asio::socket_base::keep_alive{true}, ignored);
      error_code gone;
      const tcp::endpoint peer = socket.remote_endpoint(gone);
      if (!gone) notices::debugging_from(peer.address().to_string(), peer.port());
    });
  }
  void close() override {
    error_code ignored;
    acceptor_.close(ignored);
  }
  [[nodiscard]] bool ends_with_client() const override { return false; }
  [[nodiscard]] int fd() const override { return listening_fd(acceptor_); }
  [[nodiscard]] std::uint16_t port() const override { return port_; }

 private:
  mutable tcp::acceptor acceptor_;
  std::uint16_t port_;
};

}  // namespace

Explained<std::unique_ptr<Listener>> open_tcp_listener(asio::io_context& io, const CommSpec& comm) {
  const auto endpoint = resolve(io, comm);
  if (!endpoint) return explain(endpoint.error());
  tcp::acceptor acceptor{io};
  error_code error;
  acceptor.open(endpoint->protocol(), error);
  if (!error) {
    keep_from_programs(acceptor.native_handle());
    acceptor.set_option(tcp::acceptor::reuse_address{true}, error);
    acceptor.bind(*endpoint, error);
  }
  if (!error) acceptor.listen(1, error);
  if (error) return explain(bind_failure(comm, error));
  const std::uint16_t port = acceptor.local_endpoint(error).port();
  return std::make_unique<TcpListener>(std::move(acceptor), port);
}

}  // namespace backtrail::server
