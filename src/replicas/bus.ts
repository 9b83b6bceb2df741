/** Sends messages between the replicas of an installation. */
import type { Logger } from 'pino'
import { z } from 'zod'
import type { Subscriber } from './coordination-store.ts'

/**
 * Topic names must stay the same across versions. A `forget` message contains a cache name; `stop-upload`, a
 * reason and an artifact id; `turn`, the id of a turn or a conversation; `conversation`, the ids of a
 * tenant and a conversation; `cancel-turn` and `read-turn`, a turn id. A `jobs` message is empty, and all others contain an artifact id.
 */
const topics = [
  'forget',
  'artifact',
  'stop-upload',
  'upload-stopping',
  'upload-ended',
  'jobs',
  'turn',
  'conversation',
  'cancel-turn',
  'read-turn',
] as const
export type Topic = (typeof topics)[number]

export interface Bus {
  /** True if other replicas can exist. */
  readonly reachesOthers: boolean
  /**
   * Queues a message for all other replicas; never throws. Messages are lost while the store is unavailable.
   */
  publish(topic: Topic, text?: string): void
  /** Calls the listener with messages from other replicas; logs errors that it throws. */
  subscribe(topic: Topic, listener: (text: string) => void): void
  /** Calls the listener when messages may have been missed. */
  onGap(listener: () => void): void
}

export const localBus: Bus = {
  reachesOthers: false,
  publish() {},
  subscribe() {},
  onGap() {},
}

/** Invalidates a cache on all replicas when it is invalidated on one; `name` must be the same on each. */
export function broadcastInvalidation<C extends { invalidate(): void }>(bus: Bus, name: string, cache: C): C {
  bus.subscribe('forget', (text) => {
    if (text === name) cache.invalidate()
  })
  bus.onGap(() => cache.invalidate())
  return {
    ...cache,
    invalidate() {
      cache.invalidate()
      bus.publish('forget', name)
    },
  }
}

/** Topic of the message that reports lost messages. */
const LOST = 'lost'

/** Below PostgreSQL's limit of 8,000 bytes per notification. */
const MESSAGE_BYTES = 7_000

const MAX_LOGGED_REASONS = 50
const MAX_LOGGED_TOPIC = 40

/** The sender, and a list of topic and text pairs. */
const Message = z.tuple([z.string(), z.array(z.tuple([z.string(), z.string()]))])

export interface StoreBus extends Bus {
  readonly subscriber: Subscriber
  /**
   * Call this when the store is available again. If messages were lost, it notifies the other replicas, which
   * then call their gap listeners.
   */
  reportLost(): void
}

/** `sender` must be unique to this replica. `send` resolves to false if the message was lost. */
export function createStoreBus(
  sender: string,
  send: (text: string) => Promise<boolean>,
  log: Logger,
): StoreBus {
  const drop = createDropLog(log)
  const listeners = new Map<string, ((text: string) => void)[]>()
  const gapListeners: (() => void)[] = []
  /** A set, so that duplicate messages are sent once. */
  const unsent = new Set<string>()
  let isSending = false
  let hasLost = false

  async function sendAll(): Promise<void> {
    isSending = true
    while (unsent.size > 0) {
      const isSent = await send(`["${sender}",[${takeBatch(unsent).join()}]]`)
      hasLost ||= !isSent
    }
    isSending = false
  }

  function publish(topic: Topic | typeof LOST, text = ''): void {
    unsent.add(JSON.stringify([topic, text]))
    // Waits for a microtask, so that everything published until then is sent in one message.
    if (!isSending) queueMicrotask(() => isSending || void sendAll())
  }

  function onGap(): void {
    for (const listener of gapListeners) call(LOST, listener, '')
  }

  /** Catches errors, because they would crash the process when thrown from a connection's event handler. */
  function call(topic: string, listener: (text: string) => void, text: string): void {
    try {
      listener(text)
    } catch (error) {
      drop(topic, error instanceof Error ? error.message : String(error))
    }
  }

  return {
    reachesOthers: true,
    publish,
    subscribe(topic, listener) {
      listeners.set(topic, [...(listeners.get(topic) ?? []), listener])
    },
    onGap: (listener) => void gapListeners.push(listener),
    reportLost() {
      if (!hasLost) return
      hasLost = false
      publish(LOST)
    },
    subscriber: {
      onMessage(text) {
        const message = parseMessage(text)
        if (message === undefined) return drop('', 'it is not a Parley message')
        if (message[0] === sender) return
        for (const [topic, content] of message[1]) {
          if (topic === LOST) onGap()
          else if (!topics.some((known) => known === topic))
            drop(topic, 'this version does not support its topic')
          for (const listener of listeners.get(topic) ?? []) call(topic, listener, content)
        }
      },
      onGap,
    },
  }
}

/**
 * Logs each reason once, because a replica that runs a different version may send such a message every
 * second.
 */
function createDropLog(log: Logger): (topic: string, reason: string) => void {
  const logged = new Set<string>()
  return (topic, reason) => {
    const name = `${topic.slice(0, MAX_LOGGED_TOPIC)}: ${reason}`
    if (logged.has(name) || logged.size >= MAX_LOGGED_REASONS) return
    logged.add(name)
    log.warn({ topic: topic.slice(0, MAX_LOGGED_TOPIC), reason }, 'dropped a message from another replica')
  }
}

/**
 * Removes as many entries as fit into one message. An entry that is too long is sent alone, and the store
 * rejects it.
 */
function takeBatch(unsent: Set<string>): string[] {
  const batch: string[] = []
  let sizeBytes = 0
  for (const entry of unsent) {
    sizeBytes += Buffer.byteLength(entry) + 1
    if (batch.length > 0 && sizeBytes > MESSAGE_BYTES) break
    batch.push(entry)
    unsent.delete(entry)
  }
  return batch
}

function parseMessage(text: string): z.infer<typeof Message> | undefined {
  try {
    return Message.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
