/**
 * Keeps the trials of definitions while the console is open, so that they survive saving and creating an
 * agent.
 */
import { useSyncExternalStore } from 'react'
import type { Entry } from '../../../widget/frame/conversation.ts'
import type { TraceTurn } from './trace.ts'

/** The subject of a chat: the draft, the saved version, or the draft with another model (`model:<id>`). */
export type Choice = 'draft' | 'saved' | `model:${string}`

/** A call to a page tool that waits for the tester's result. */
export interface PendingCall {
  readonly id: string
  readonly name: string
  readonly argumentsText: string
}

/** One of the chats that are shown side by side. */
export interface Lane {
  readonly id: string
  readonly choice: Choice
  readonly entries: readonly Entry[]
  readonly turns: readonly TraceTurn[]
  readonly pending: readonly PendingCall[]
}

export interface TrialState {
  readonly lanes: readonly Lane[]
  /** The chat whose trace is shown. */
  readonly tracedLane: string
}

/** Sends a message in one chat, after the user's first `position` messages. */
type Ask = (text: string, position: number) => void

export const MAX_LANES = 3

export class Trial {
  private state: TrialState
  private readonly listeners = new Set<() => void>()
  private readonly asks = new Map<string, Ask>()
  private count = 0

  constructor() {
    const lane = this.newLane('draft')
    this.state = { lanes: [lane], tracedLane: lane.id }
  }

  readonly get = (): TrialState => this.state

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  lane(id: string): Lane | undefined {
    return this.state.lanes.find((lane) => lane.id === id)
  }

  changeLane(id: string, change: (lane: Lane) => Partial<Lane>): void {
    this.set({
      lanes: this.state.lanes.map((lane) => (lane.id === id ? { ...lane, ...change(lane) } : lane)),
    })
  }

  showTrace(tracedLane: string): void {
    this.set({ tracedLane })
  }

  addLane(choice: Choice): void {
    this.set({ lanes: [...this.state.lanes, this.newLane(choice)] })
  }

  removeLane(id: string): void {
    const lanes = this.state.lanes.filter((lane) => lane.id !== id)
    const isTraced = lanes.some((lane) => lane.id === this.state.tracedLane)
    this.set({ lanes, tracedLane: isTraced ? this.state.tracedLane : (lanes[0]?.id ?? '') })
  }

  /** Registers the function that sends messages in a chat; returns a function that removes it. */
  connect(id: string, ask: Ask): () => void {
    this.asks.set(id, ask)
    return () => void (this.asks.get(id) === ask && this.asks.delete(id))
  }

  /**
   * Sends a message in all chats, or in all except one. Without a position, the message follows the last one.
   */
  ask(text: string, position?: number, except?: string): void {
    for (const { id, entries } of this.state.lanes) {
      const end = entries.filter(({ kind }) => kind === 'user').length
      if (id !== except) this.asks.get(id)?.(text, position ?? end)
    }
  }

  private newLane(choice: Choice): Lane {
    this.count += 1
    return { id: `chat-${this.count}`, choice, entries: [], turns: [], pending: [] }
  }

  private set(changes: Partial<TrialState>): void {
    this.state = { ...this.state, ...changes }
    for (const listener of this.listeners) listener()
  }
}

const trials = new Map<string, Trial>()

/** Returns the trial of an agent, or of a definition that has not been saved yet. */
export function trialOf(subject: string): Trial {
  const known = trials.get(subject)
  if (known !== undefined) return known
  const trial = new Trial()
  trials.set(subject, trial)
  return trial
}

/** Continues the trial of a new definition as the trial of the agent that was created from it. */
export function moveTrial(from: string, to: string): void {
  const trial = trials.get(from)
  trials.delete(from)
  if (trial !== undefined) trials.set(to, trial)
}

export function useTrial(trial: Trial): TrialState {
  return useSyncExternalStore(trial.subscribe, trial.get)
}
