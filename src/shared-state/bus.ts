/** Tells the other replicas what has happened here. */

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
