/** Tells the other replicas what has happened here. */
import type { Logger } from 'pino'
import { z } from 'zod'
import type { Hearing } from './coordination-store.ts'

/**
 * What replicas tell each other: that something remembered is no longer so (which), that an artifact has changed (its id), that
 * whoever writes into one is to stop (why, and its id), that they heard it (its id), that somebody does no longer (its id), and that there
 * are jobs to be done.
 */
export const topics = [
  'forget',
  'artifact',
  'stop-upload',
  'upload-stopping',
  'upload-ended',
  'jobs',
] as const
export type Topic = (typeof topics)[number]

export interface Bus {
  /** Whether there can be anybody who hears it. */
  readonly reachesOthers: boolean
  /** Tells all others soon, as long as they can be reached; it never throws and nobody waits for it. */
  publish(topic: Topic, text?: string): void
  /** Calls the listener with what the others tell; one's own words are not among that. What it throws is logged, and the message dropped. */
  subscribe(topic: Topic, listener: (text: string) => void): void
  /** Calls the listener whenever something may have been missed. */
  onGap(listener: () => void): void
}

/** For the only replica there is: nobody hears it, and nobody tells it anything. */
export const loneBus: Bus = {
  reachesOthers: false,
  publish() {},
  subscribe() {},
  onGap() {},
}

/** The same memory, which is forgotten on all replicas when it is on one: under one name everywhere. */
export function shareForgetting<M extends { forget(): void }>(bus: Bus, name: string, memory: M): M {
  bus.subscribe('forget', (text) => {
    if (text === name) memory.forget()
  })
  bus.onGap(() => memory.forget())
  return {
    ...memory,
    forget() {
      memory.forget()
      bus.publish('forget', name)
    },
  }
}

/** Says that whoever speaks has said something before that nobody heard. */
const LOST = 'lost'

/** PostgreSQL takes no longer message than 8,000 bytes. */
const MESSAGE_BYTES = 7_000

/** Reasons to drop a message that are logged, and characters of its topic. */
const MAX_LOGGED = 50
const MAX_LOGGED_TOPIC = 40

/** Who speaks, and each topic with its text. */
const Message = z.tuple([z.string(), z.array(z.tuple([z.string(), z.string()]))])

/** A bus, and what the store calls with what it hears. */
export interface StoreBus extends Bus {
  readonly hearing: Hearing
  /** The store is reached again: if anything was lost, the others take it that they have missed something. */
  makeUpForLost(): void
}

/** `speaker` is nobody else's name; `send` resolves with whether a text is on its way: else it is lost. */
export function createStoreBus(
  speaker: string,
  send: (text: string) => Promise<boolean>,
  log: Logger,
): StoreBus {
  const drop = createDropLog(log)
  const listeners = new Map<string, ((text: string) => void)[]>()
  const gapListeners: (() => void)[] = []
  /** The same twice is told once. */
  const untold = new Set<string>()
  let isTelling = false
  let hasLost = false

  async function tell(): Promise<void> {
    isTelling = true
    while (untold.size > 0) {
      const isSent = await send(`["${speaker}",[${takeSome(untold).join()}]]`)
      hasLost ||= !isSent
    }
    isTelling = false
  }

  function publish(topic: Topic | typeof LOST, text = ''): void {
    untold.add(JSON.stringify([topic, text]))
    // Whatever else is published in this turn goes with it.
    if (!isTelling) queueMicrotask(() => isTelling || void tell())
  }

  function missed(): void {
    for (const listener of gapListeners) call(LOST, listener, '')
  }

  /** The caller is an event of a connection, where an error that is thrown would end the process. */
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
    makeUpForLost() {
      if (!hasLost) return
      hasLost = false
      publish(LOST)
    },
    hearing: {
      onMessage(text) {
        const message = parseMessage(text)
        if (message === undefined) return drop('', 'it is not a message of Parley')
        if (message[0] === speaker) return
        for (const [topic, content] of message[1]) {
          if (topic === LOST) missed()
          else if (!isKnown(topic)) drop(topic, 'this version does not know its topic')
          for (const listener of listeners.get(topic) ?? []) call(topic, listener, content)
        }
      },
      onGap: missed,
    },
  }
}

function isKnown(topic: string): boolean {
  return topics.some((known) => known === topic)
}

/** Logs why a message was dropped, once for each reason: a replica of another version may send it every second. */
function createDropLog(log: Logger): (topic: string, reason: string) => void {
  const logged = new Set<string>()
  return (topic, reason) => {
    const name = `${topic.slice(0, MAX_LOGGED_TOPIC)}: ${reason}`
    if (logged.has(name) || logged.size >= MAX_LOGGED) return
    logged.add(name)
    log.warn({ topic: topic.slice(0, MAX_LOGGED_TOPIC), reason }, 'dropped a message from another replica')
  }
}

/** Takes out as many as fit into one message; one that does not fit alone goes alone, and is lost. */
function takeSome(untold: Set<string>): string[] {
  const some: string[] = []
  let sizeBytes = 0
  for (const one of untold) {
    sizeBytes += Buffer.byteLength(one) + 1
    if (some.length > 0 && sizeBytes > MESSAGE_BYTES) break
    some.push(one)
    untold.delete(one)
  }
  return some
}

function parseMessage(text: string): z.infer<typeof Message> | undefined {
  try {
    return Message.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
