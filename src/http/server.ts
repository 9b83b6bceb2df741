/** Creates the HTTP server, sets its limits, and shuts it down gracefully. */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { StartupError } from '../lib/errors.ts'
import { within } from '../lib/timeout.ts'

const ABORTED_CALLS_MS = 2_000
const CLOSE_IDLE_EVERY_MS = 50
/** Exceeds the 511 connections that Node's listen backlog can hold. */
const MAX_ACCEPT_TURNS = 1_024

/**
 * Sets no timeout for whole requests, because uploads and streams may be long; body readers set their own
 * timeouts.
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
  // Handlers send `100 Continue` after authentication; unknown expectations are ignored.
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

/**
 * Returns a function that stops accepting connections, waits up to `graceMs` for active responses, and aborts
 * the rest.
 */
export function createDrain(server: Server): (graceMs: number, abortCalls: () => void) => Promise<void> {
  const open = new Set<Socket>()
  let accepted = 0
  server.on('connection', (socket: Socket) => {
    accepted += 1
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })

  /** Closes idle connections. Node stops checking them after `close`, so they would delay the exit. */
  function closeIdle(): void {
    server.closeIdleConnections()
    // Also closes connections that have not sent a request, which browsers open in advance; Node does not
    // treat these as idle.
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
  }

  /**
   * Accepts the connections that are waiting in the backlog, because closing the server would reset them.
   * Node accepts one per event-loop turn.
   */
  async function acceptWaiting(): Promise<void> {
    for (let turn = 0, quietTurns = 0; turn < MAX_ACCEPT_TURNS && quietTurns < 3; turn++) {
      const before = accepted
      await nextTurn()
      quietTurns = accepted === before ? quietTurns + 1 : 0
    }
  }

  return async (graceMs, abortCalls) => {
    await acceptWaiting()
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
    EADDRINUSE: `Port ${port} on ${host} is used by another program; set PORT to a free port.`,
    EACCES: `Port ${port} requires more privileges; set PORT to a port above 1023.`,
    EADDRNOTAVAIL: `This machine has no address ${host}; set HOST to one of its addresses.`,
    ENOTFOUND: `The host name ${host} is unknown; set HOST to an address of this machine.`,
  }
  const message = reasons[error.code ?? '']
  return message === undefined ? error : new StartupError(message, { cause: error })
}
