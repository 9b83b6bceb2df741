/** The HTTP server under the app: its limits, where it listens, and how it goes away without cutting anybody off early. */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { StartupError } from '../lib/errors.ts'
import { within } from '../lib/timeout.ts'

/** After streams were told to end, so long until their connections are cut. */
const LAST_WORDS_MS = 2_000
/** How often connections that wait for a request are looked for while the server closes. */
const CLOSE_WAITING_EVERY_MS = 50

/**
 * A server that answers with `listener`. There is no limit on a whole request, because uploads and streams may last; the doors
 * time bodies themselves. Security: 2.4.
 */
function createHttpServer(listener: RequestListener): Server {
  const server = createServer(
    {
      headersTimeout: 15_000,
      requestTimeout: 0,
      connectionsCheckingInterval: 5_000,
      keepAliveTimeout: 75_000,
      maxHeaderSize: 16_384,
    },
    listener,
  )
  server.maxConnections = 10_000
  // The body is asked for once the caller is known, not before; an expectation nobody knows is not one to fail for.
  server.on('checkContinue', listener).on('checkExpectation', listener)
  return server
}

/**
 * Listens, and resolves when requests are accepted.
 * @throws StartupError when the address or port cannot be used.
 */
export async function listen(listener: RequestListener, host: string, port: number): Promise<Server> {
  const server = createHttpServer(listener)
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ host, port }, resolve)
    })
  } catch (error) {
    throw toStartupError(error as NodeJS.ErrnoException, host, port)
  }
  server.removeAllListeners('error')
  return server
}

/** Where a listening server can be reached on this machine. */
export function urlOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

/**
 * Watches a server's connections from now on. The function returned stops accepting, waits up to `graceMs` for answers under way,
 * then has them ended (`endStreams`) and cuts what is left. Decision: 2 (`serve`).
 */
export function createDrain(server: Server): (graceMs: number, endStreams: () => void) => Promise<void> {
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })

  /** Connections without a request must not hold the exit: once `close` was called Node looks after neither kind any more. */
  function closeWaiting(): void {
    // Kept by a client after the answer it waited for.
    server.closeIdleConnections()
    // Made by a browser ahead of its requests: to Node such a connection is not idle.
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
  }

  return async (graceMs, endStreams) => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    const closing = setInterval(closeWaiting, CLOSE_WAITING_EVERY_MS)
    const isClosed = closed.then(() => true)
    const isLate = () => false
    if (!(await within(graceMs, isClosed, isLate))) {
      endStreams()
      if (!(await within(LAST_WORDS_MS, isClosed, isLate))) server.closeAllConnections()
    }
    await closed
    clearInterval(closing)
  }
}

function toStartupError(error: NodeJS.ErrnoException, host: string, port: number): unknown {
  const reasons: Readonly<Record<string, string>> = {
    EADDRINUSE: `Port ${port} on ${host} is taken by another program; choose another with PORT.`,
    EACCES: `Port ${port} may not be used by this user; choose one above 1023 with PORT.`,
    EADDRNOTAVAIL: `This machine has no address ${host}; choose another with HOST.`,
    ENOTFOUND: `The host name ${host} is not known; choose another with HOST.`,
  }
  const message = reasons[error.code ?? '']
  return message === undefined ? error : new StartupError(message, { cause: error })
}
