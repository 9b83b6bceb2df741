/** Tells a statement that takes long from a server that is gone without a word. */
import { Client, type ClientConfig, type PoolClient } from 'pg'

/** Only then is it asked: most statements are answered long before. */
const SLOW_AFTER_MS = 2_000

export interface Pulse {
  /**
   * Watches over a statement: while it goes on for long and no new connection can be made either, its connection is closed, and it fails.
   * The answer ends the watch.
   */
  watch(client: PoolClient): () => void
}

/** Asks with connections of that kind, one at a time for all statements. */
export function createPulse(config: ClientConfig): Pulse {
  let asking: Promise<boolean> | undefined

  function isAlive(): Promise<boolean> {
    asking ??= canConnect(config).finally(() => {
      asking = undefined
    })
    return asking
  }

  return {
    watch(client) {
      let isOver = false
      const timer = setTimeout(async () => {
        // With a statement under way this does not wait for the server.
        if (!(await isAlive()) && !isOver) await (client as unknown as Client).end()
      }, SLOW_AFTER_MS).unref()
      return () => {
        isOver = true
        clearTimeout(timer)
      }
    },
  }
}

async function canConnect(config: ClientConfig): Promise<boolean> {
  const client = new Client(config)
  client.on('error', () => {})
  try {
    await client.connect()
    return true
  } catch {
    return false
  } finally {
    void client.end().catch(() => {})
  }
}
