/** The HTTP server of the app: its limits, where it listens, and how it shuts down gracefully. */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { StartupError } from '../lib/errors.ts'
import { within } from '../lib/timeout.ts'

const ABORTED_CALLS_MS = 2_000
const CLOSE_IDLE_EVERY_MS = 50

/** A whole request has no timeout, because uploads and streams may take long; readers of bodies have their own. */
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
  // `100 Continue` is sent once the caller is authenticated; unknown expectations are ignored.
  server.on('checkContinue', listener).on('checkExpectation', listener)
  return server
}

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

export function urlOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

/** The returned function stops accepting, waits up to `graceMs` for active responses, then aborts them and closes what is left. */
export function createDrain(server: Server): (graceMs: number, abortCalls: () => void) => Promise<void> {
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })

  /** Idle connections would delay the exit: after `close` Node no longer checks them. */
  function closeIdle(): void {
    server.closeIdleConnections()
    // Node does not count a connection without a first request as idle; browsers open those in advance.
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
  }

  return async (graceMs, abortCalls) => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    const closing = setInterval(closeIdle, CLOSE_IDLE_EVERY_MS)
    const isClosed = closed.then(() => true)
    const isLate = () => false
    if (!(await within(graceMs, isClosed, isLate))) {
      abortCalls()
      if (!(await within(ABORTED_CALLS_MS, isClosed, isLate))) server.closeAllConnections()
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
