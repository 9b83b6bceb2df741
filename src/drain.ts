/** Empties a server that is to stop: answers under way may end, and no connection without a request holds the exit. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { closeGracefully } from './http-server.ts'

const CLOSE_UNUSED_EVERY_MS = 100

/** Watches a server's connections from now on; the function returned empties and closes it, as `closeGracefully` does. */
export function createDrain(server: Server): (graceMs: number, endStreams: () => void) => Promise<void> {
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })

  /** Browsers connect ahead of their requests. To Node such a connection is not idle, and it ends its own timer for it. */
  function closeUnused(): void {
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
  }

  return async (graceMs, endStreams) => {
    const closing = setInterval(closeUnused, CLOSE_UNUSED_EVERY_MS)
    await closeGracefully(server, graceMs, endStreams)
    clearInterval(closing)
  }
}
