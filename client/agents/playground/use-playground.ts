/** Runs a playground conversation with the draft, the saved version, or both. */
import { useCallback, useEffect, useRef, useState } from 'react'
import type { DefinitionFormat } from '../../api.ts'
import { api } from '../../api.ts'
import { toFailure } from '../../failure.ts'
import { reportCall } from '../../first-run/first-run.ts'
import { addChunk, answerCalls, emptyReply, endReply, type Message, type Reply, type Side } from './reply.ts'

export interface PlaygroundTurn {
  readonly id: number
  readonly question: string
  readonly replies: Readonly<Partial<Record<Side, Reply>>>
}

export interface PlaygroundSubject {
  /** Undefined for an agent that has not been created yet. */
  readonly agentId: string | undefined
  readonly yaml: string
  readonly format: DefinitionFormat
}

export interface Playground {
  readonly turns: readonly PlaygroundTurn[]
  readonly isRunning: boolean
  ask(question: string, sides: readonly Side[]): void
  answer(turnId: number, side: Side, results: Readonly<Record<string, string>>): void
  stop(): void
  clear(): void
}

export function usePlayground(subject: PlaygroundSubject): Playground {
  const [turns, setTurns] = useState<readonly PlaygroundTurn[]>([])
  const latest = useRef({ subject, turns })
  latest.current = { subject, turns }
  const running = useRef(new Set<AbortController>())
  const stop = useCallback(() => {
    for (const controller of running.current) controller.abort()
  }, [])
  useEffect(() => stop, [stop])

  function setReply(turnId: number, side: Side, reply: Reply): void {
    setTurns((all) =>
      all.map((turn) =>
        turn.id === turnId ? { ...turn, replies: { ...turn.replies, [side]: reply } } : turn,
      ),
    )
  }

  async function run(turnId: number, side: Side, start: Reply, messages: readonly Message[]): Promise<void> {
    const controller = new AbortController()
    running.current.add(controller)
    try {
      const replies = streamReply(latest.current.subject, side, start, messages, controller.signal)
      for await (const reply of replies) setReply(turnId, side, reply)
    } finally {
      running.current.delete(controller)
      reportCall()
    }
  }

  return {
    turns,
    isRunning: turns.some(({ replies }) => Object.values(replies).some(({ status }) => status === 'running')),
    ask(question, sides) {
      const before = latest.current.turns
      const id = (before.at(-1)?.id ?? 0) + 1
      const replies = Object.fromEntries(sides.map((side) => [side, emptyReply]))
      setTurns([...before, { id, question, replies }])
      for (const side of sides) {
        void run(id, side, emptyReply, [...toMessages(before, side), { role: 'user', content: question }])
      }
    },
    answer(turnId, side, results) {
      const all = latest.current.turns
      const place = all.findIndex(({ id }) => id === turnId)
      const turn = all[place]
      const reply = turn?.replies[side]
      if (turn === undefined || reply === undefined) return
      const next = answerCalls(reply, results)
      setReply(turnId, side, next)
      const asked: Message = { role: 'user', content: turn.question }
      void run(turnId, side, next, [...toMessages(all.slice(0, place), side), asked, ...next.thread])
    },
    stop,
    clear() {
      stop()
      setTurns([])
    },
  }
}

/** Returns one side's earlier messages, without turns in which that side has no reply. */
function toMessages(turns: readonly PlaygroundTurn[], side: Side): Message[] {
  return turns.flatMap(({ question, replies }) => {
    const thread = replies[side]?.thread ?? []
    return thread.length === 0 ? [] : [{ role: 'user', content: question } satisfies Message, ...thread]
  })
}

/** Yields the reply after each change; the last reply is complete, stopped or failed. */
async function* streamReply(
  { agentId, yaml, format }: PlaygroundSubject,
  side: Side,
  start: Reply,
  messages: readonly Message[],
  signal: AbortSignal,
): AsyncGenerator<Reply> {
  const startedMs = performance.now() - start.totalMs
  let reply = start
  try {
    const request = {
      ...(agentId === undefined ? {} : { model: `agent/${agentId}` }),
      messages: [...messages],
      stream_options: { include_usage: true },
      trial: { is_traced: true, ...(side === 'draft' ? { draft: { yaml, format } } : {}) },
    }
    for await (const run of await api.chat.stream.mutate(request, { signal })) {
      for (const chunk of run) reply = addChunk(reply, chunk, performance.now() - startedMs)
      yield reply
    }
    yield endReply(reply)
  } catch (thrown) {
    if (signal.aborted) yield { ...endReply(reply), status: 'stopped' }
    else yield { ...reply, status: 'failed', problem: toFailure(thrown).message }
  }
}
