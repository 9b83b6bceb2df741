/**
 * Stops this process's turns of a conversation, so that the transaction of a takeover can store their ends.
 */
import type { RunningTurn } from '../turns/running-turn.ts'
import type { TurnWriter, WrittenTurn } from '../turns/writer.ts'
import type { StoppedTurn } from './procedures.ts'

interface Dependencies {
  readonly running: ReadonlyMap<string, RunningTurn>
  readonly writer: Pick<TurnWriter, 'add' | 'release'>
}

interface Stopped {
  readonly turn: RunningTurn
  readonly written: WrittenTurn | undefined
  readonly stored: StoppedTurn
}

export class StoppedTurns {
  private readonly deps: Dependencies
  /** By turn id; resolves to true if a takeover has stored the turn's end. */
  private readonly takeovers = new Map<string, PromiseWithResolvers<boolean>>()

  constructor(deps: Dependencies) {
    this.deps = deps
  }

  /** Stops the running turns of a conversation, and runs `store` with them. */
  async storeWith<Result>(
    conversationId: string,
    store: (
      turns: readonly StoppedTurn[],
    ) => Promise<{ readonly isStored: boolean; readonly result: Result }>,
  ): Promise<Result> {
    const own = [...this.deps.running.values()].filter((turn) => turn.conversationId === conversationId)
    const stopping = own.filter((turn) => turn.stop('taken_over'))
    for (const turn of stopping) this.takeovers.set(turn.id, Promise.withResolvers())
    const stopped = await Promise.all(stopping.map((turn) => this.takeFromWriter(turn)))
    // A turn that was ending anyway stores its end itself.
    await Promise.all(own.filter((turn) => !stopping.includes(turn)).map(({ finished }) => finished.promise))
    let isStored = false
    try {
      const outcome = await store(stopped.map(({ stored }) => stored))
      isStored = outcome.isStored
      return outcome.result
    } finally {
      for (const each of stopped) this.settle(each, isStored)
    }
  }

  /** Resolves to true if a takeover has stored the turn's end. Waits for a takeover that is in progress. */
  async hasStored(turnId: string): Promise<boolean> {
    return (await this.takeovers.get(turnId)?.promise) ?? false
  }

  private async takeFromWriter(turn: RunningTurn): Promise<Stopped> {
    const { failure, ...end } = await turn.ended
    await turn.accepted.promise
    const written = await this.deps.writer.release(turn.id)
    const segments = turn.log.takeWaiting()
    return {
      turn,
      written,
      stored: { turnId: turn.id, segments, end: { ...end, failureCode: failure?.code } },
    }
  }

  private settle({ turn, written, stored }: Stopped, isStored: boolean): void {
    if (isStored) turn.log.markStored(stored.segments)
    else if (written !== undefined) this.deps.writer.add(written)
    this.takeovers.get(turn.id)?.resolve(isStored)
    this.takeovers.delete(turn.id)
  }
}
