/** Runs one chat of a trial. Connects its frame, calls the model for it, and records the trace. */

import type { TrialCommand, TrialEvent } from '../../../widget/frame/trial/messages.ts'
import type { PageMessage } from '../../../widget/messages.ts'
import { PROTOCOL } from '../../../widget/messages.ts'
import { api, type Inputs } from '../../api.ts'
import { toFailure } from '../../failure.ts'
import { reportCall } from '../../first-run/first-run.ts'
import { t } from '../../strings/language.ts'
import {
  addChunks,
  addRequest,
  beginPageTool,
  endTool,
  endTurn,
  isRunning,
  newTurn,
  type TraceTurn,
} from './trace.ts'
import type { Trial } from './trial.ts'

/** The fields of a chat request that select the definition and the model. */
export type LaneRequest = Pick<Inputs['chat']['stream'], 'model' | 'trial'>
type ChatBody = Extract<TrialEvent, { type: 'chat' }>['body']

interface LaneParts {
  readonly trial: Trial
  readonly laneId: string
  /** Returns the request fields that select the current definition and model. */
  readonly toRequest: () => LaneRequest
  readonly onConnect: (lane: LaneSession) => void
}

export class LaneSession {
  private readonly parts: LaneParts
  private readonly running = new Map<string, AbortController>()
  private readonly ended = new AbortController()
  private port: MessagePort | undefined
  private page: MessagePort | undefined
  private turnStartedMs = 0

  constructor(frame: HTMLIFrameElement, parts: LaneParts) {
    this.parts = parts
    this.connect(frame)
  }

  post(command: TrialCommand): void {
    this.port?.postMessage(command)
  }

  /** Sends a message over the port that connects the frame to its embedding page. */
  postPage(message: PageMessage): void {
    this.page?.postMessage(message)
  }

  answerTool(id: string, text: string): void {
    this.post({ type: 'tool-result', id, text, isError: false })
    this.endCall(id, text)
  }

  end(): void {
    this.ended.abort()
    for (const controller of this.running.values()) controller.abort()
    this.port?.close()
    this.page?.close()
  }

  /** Performs the handshake of `widget/messages.ts`, with a second port for the trial. */
  private connect(frame: HTMLIFrameElement): void {
    const { signal } = this.ended
    const session = crypto.randomUUID?.() ?? String(performance.now())
    const greet = (type: 'page-hello' | 'port', ports: MessagePort[]) =>
      frame.contentWindow?.postMessage({ protocol: PROTOCOL, type, session }, window.location.origin, ports)
    const onHello = ({ source, data }: MessageEvent<{ type?: unknown; session?: unknown } | null>) => {
      if (source !== frame.contentWindow || data?.type !== 'frame-hello' || data.session !== session) return
      const [page, trial] = [new MessageChannel(), new MessageChannel()]
      this.page?.close()
      this.port?.close()
      this.page = page.port1
      this.port = trial.port1
      page.port1.onmessage = ({ data }: MessageEvent<{ type: string }>) => {
        // Rejects the shared text, because the console does not use it; the frame then copies it to the
        // clipboard.
        if (data.type === 'share') this.postPage({ type: 'share', isReceived: false })
      }
      trial.port1.onmessage = ({ data }: MessageEvent<TrialEvent>) => this.receive(data)
      greet('port', [page.port2, trial.port2])
      this.parts.onConnect(this)
    }
    window.addEventListener('message', onHello, { signal })
    const hello = () => greet('page-hello', [])
    frame.addEventListener('load', hello, { signal })
    if (frame.contentDocument?.readyState === 'complete') hello()
  }

  private receive(event: TrialEvent): void {
    const { trial, laneId } = this.parts
    if (event.type === 'chat') void this.answer(event.id, event.body)
    else if (event.type === 'chat-stopped') this.running.get(event.id)?.abort()
    else if (event.type === 'tool-call') this.beginCall(event)
    else if (event.type === 'tool-stopped') {
      this.endCall(event.id, t('trial.stopped'))
      this.changeTurn((turn) => endTurn(turn, 'stopped', this.nowMs()))
    } else if (event.type === 'asked') trial.ask(event.text, event.position, laneId)
    else {
      const questions = event.entries.filter(({ kind }) => kind === 'user').length
      trial.changeLane(laneId, ({ turns }) => ({ entries: event.entries, turns: turns.slice(0, questions) }))
      const last = event.entries.at(-1)
      const isStopped = last?.kind === 'reply' && last.status === 'stopped'
      if (isStopped) this.changeTurn((turn) => endTurn(turn, 'stopped', this.nowMs()))
    }
  }

  private async answer(id: string, body: ChatBody): Promise<void> {
    const controller = new AbortController()
    this.running.set(id, controller)
    const request = { ...this.parts.toRequest(), ...body, stream_options: { include_usage: true } }
    this.beginRequest(body, request)
    const offsetMs = this.nowMs()
    try {
      const stream = await api.chat.stream.mutate(request as Inputs['chat']['stream'], {
        signal: controller.signal,
      })
      let waits = false
      for await (const chunks of stream) {
        this.changeTurn((turn) => addChunks(turn, chunks, { offsetMs, nowMs: this.nowMs() }))
        const shown = chunks.filter(({ step }) => step === undefined)
        if (shown.length > 0) this.post({ type: 'chunks', id, chunks: shown })
        waits ||= shown.some(({ choices }) => choices.some((one) => one.finish_reason === 'tool_calls'))
      }
      this.post({ type: 'answered', id })
      if (!waits) this.changeTurn((turn) => endTurn(turn, 'done', this.nowMs()))
    } catch (thrown) {
      this.fail(id, thrown, controller.signal.aborted)
    } finally {
      this.running.delete(id)
      reportCall()
    }
  }

  private fail(id: string, thrown: unknown, isStopped: boolean): void {
    if (isStopped) {
      this.changeTurn((turn) => endTurn(turn, 'stopped', this.nowMs()))
      return
    }
    const { status, code, message, requestId } = toFailure(thrown)
    // The console reports that its session has ended; the frame must not treat this as an invalid agent key.
    const isRejected = status === 401 || status === 403
    const shown = isRejected ? { status: 503, code: '' } : { status, code }
    const error = status === 0 ? null : { ...shown, retryAfterSeconds: undefined }
    this.changeTurn((turn) => ({
      ...endTurn(turn, 'failed', this.nowMs()),
      problem: message,
      requestId,
    }))
    this.post({ type: 'answered', id, error })
  }

  /** Continues the last turn after tool results, or starts a turn at the question's position. */
  private beginRequest({ messages }: ChatBody, request: unknown): void {
    const { trial, laneId } = this.parts
    const questions = messages.filter(({ role }) => role === 'user')
    const isNew = messages.at(-1)?.role === 'user'
    if (isNew) this.turnStartedMs = performance.now()
    trial.changeLane(laneId, ({ turns }) => {
      const position = Math.max(0, questions.length - 1)
      const known = isNew ? undefined : turns[position]
      const question = String(questions.at(-1)?.content ?? '')
      const turn = known ?? newTurn(`${laneId}-${position}-${performance.now()}`, question)
      return { turns: [...turns.slice(0, position), addRequest(turn, request)] }
    })
  }

  private beginCall({ id, name, args }: Extract<TrialEvent, { type: 'tool-call' }>): void {
    const { trial, laneId } = this.parts
    const call = { id, name, argumentsText: JSON.stringify(args) }
    this.changeTurn((turn) => beginPageTool(turn, { ...call, startMs: this.nowMs() }))
    trial.changeLane(laneId, ({ pending }) => ({ pending: [...pending, call] }))
  }

  private endCall(id: string, result: string): void {
    const { trial, laneId } = this.parts
    trial.changeLane(laneId, ({ pending }) => ({ pending: pending.filter((call) => call.id !== id) }))
    this.changeTurn((turn) => endTool(turn, id, result, this.nowMs()))
  }

  private changeTurn(change: (turn: TraceTurn) => TraceTurn): void {
    this.parts.trial.changeLane(this.parts.laneId, ({ turns }) => {
      const last = turns.at(-1)
      return last === undefined || !isRunning(last) ? {} : { turns: turns.with(-1, change(last)) }
    })
  }

  private nowMs(): number {
    return performance.now() - this.turnStartedMs
  }
}
