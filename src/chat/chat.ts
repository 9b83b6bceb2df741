/** Runs chat turns for all APIs, and returns each answer complete or as a stream. */

import type { Spender } from '../budgets/enforcer.ts'
import type { AnswerEnd } from '../budgets/grants.ts'
import type { TurnReports } from '../conversations/conversations.ts'
import { newId } from '../lib/ids.ts'
import { addressGroup } from '../operations/access.ts'
import { type CallContext, type Caller, EventStream, JsonBytes } from '../operations/operation.ts'
import { addCost, hideCost, toUsd } from '../prices/call-cost.ts'
import { renderFixedAmount } from '../prices/money.ts'
import { beginChatCalls } from '../providers/call-span.ts'
import type { ChatRequest } from '../providers/chat-api.ts'
import {
  nameFailure,
  toAnswerEnd,
  toCallerError,
  toFailedCall,
  toInterruption,
} from '../providers/failures.ts'
import { BackendFailure } from '../providers/provider.ts'
import { Attempts, Deadline } from '../providers/retry.ts'
import type { Release } from '../replicas/limits.ts'
import type { UsageRecord } from '../usage/tracker.ts'
import { askForStream } from './answers/answer-stream.ts'
import { askAndCollect } from './answers/collect-answer.ts'
import { askForCompletion, type ModelAnswer, newNames } from './answers/model-answer.ts'
import type { Dependencies } from './dependencies.ts'
import { TurnDiagnostics } from './diagnostics/turn-diagnostics.ts'
import { limitForProvider } from './output-limit.ts'
import { TurnTrace } from './playground/trace.ts'
import { degradeTurn } from './preparation/degrade.ts'
import { backendBody, prepareTurn, type Turn } from './prepare-turn.ts'
import type { PlaygroundOptions, StreamChunk, StreamRequest } from './schema.ts'
import { decodeRuns } from './sse-reader.ts'
import { chatStored, findStoring } from './stored-chat.ts'
import { streamQuotas } from './stream-quotas.ts'
import { ToolLoop, watchTools } from './tool-loop.ts'

type Context = CallContext<Caller, Dependencies>
type Pieces = AsyncGenerator<Uint8Array, void, void>

/**
 * Answers a chat request. For a stream that is not stored, calls the model only when the client reads the
 * first event.
 * @throws ServiceError as `prepareTurn` does.
 */
export async function chat(
  context: Context,
  request: ChatRequest,
  client: AbortSignal,
): Promise<JsonBytes | EventStream> {
  const preparing = prepareTurn(context, request)
  const turn = preparing instanceof Promise ? await preparing : preparing
  const storing = findStoring(context, turn, request.store as boolean | null | undefined)
  if (storing !== undefined) return chatStored(context, { turn, request, storing, run: runTurn }, client)
  const pieces = runTurn(context, turn, client)
  return request.stream ? new EventStream(pieces) : new JsonBytes(await collect(pieces))
}

export async function streamChunks(
  context: Context,
  { trial: options, ...request }: StreamRequest,
  client: AbortSignal,
): Promise<AsyncIterable<StreamChunk[]>> {
  return decodeRuns(await startTurn(context, { ...request, stream: true }, client, options))
}

/**
 * Prepares a turn; the model is called when the first piece is read.
 * @throws ServiceError as `prepareTurn` does.
 */
export async function startTurn(
  context: Context,
  request: ChatRequest,
  client: AbortSignal,
  options?: PlaygroundOptions,
): Promise<Pieces> {
  return runTurn(context, await prepareTurn(context, request, options), client)
}

export async function collect(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const collected: Uint8Array[] = []
  for await (const piece of pieces) collected.push(piece)
  return collected
}

/**
 * Calls the model and runs its tool calls until it makes no more. Yields complete events or one completion.
 * @throws ServiceError
 */
export async function* runTurn(
  context: Context,
  prepared: Turn,
  client: AbortSignal,
  reports?: TurnReports,
): Pieces {
  const { degradable } = prepared
  const spender = toSpender(context, prepared, reports)
  const turn =
    degradable === undefined ? prepared : await degradeTurn(context.deps, prepared, degradable, spender)
  const run = new TurnRun(context, turn, spender, reports)
  const { loop, attempts, trace } = run
  let failure: unknown
  try {
    const { usage, deadline } = await run.acquire(client)
    for (;;) {
      // A person may have taken over while the tools ran.
      if (!loop.isFirst) await reports?.assertMayContinue()
      const answer = await run.ask(usage, deadline)
      let end: AnswerEnd = 'cut'
      try {
        for (let piece = answer.first; piece !== undefined; piece = await answer.next()) {
          if (!run.hasBegun) {
            run.begin(reports)
            if (trace !== undefined) yield* trace.take()
          }
          usage.sent(piece)
          yield piece
        }
        end = 'whole'
        run.diagnostics?.answered()
      } catch (thrown) {
        attempts.recordInterruption(thrown)
        run.diagnostics?.interrupted(thrown)
        answer.fail(thrown)
        end = toAnswerEnd(thrown, attempts.route.backend)
        throw thrown
      } finally {
        usage.used(answer.usage, answer, endOf(answer, end))
      }
      // Frees the provider connection before any tool runs.
      const closing = answer.close()
      if (closing !== undefined) await closing
      run.names ??= answer.names
      loop.addUsage(answer.usage)
      reports?.used(loop.usage)
      const calls = answer.callsOf(0)
      trace?.endOutput(attempts.route, answer.usage, calls.length)
      if (loop.isLast(calls)) {
        if (!run.hasBegun) run.begin(reports)
        run.reportCost(reports)
        if (trace !== undefined) yield* trace.take()
        // Uses a loop, because `yield*` would create several promises for each piece.
        for (const piece of answer.finish(loop, run.names)) yield piece
        break
      }
      for await (const step of loop.runTools(answer.message(), calls, deadline.signal)) {
        await reports?.step(step)
        trace?.addToolStep(step)
        if (trace !== undefined) yield* trace.take()
      }
    }
    await usage.end('ok')
  } catch (thrown) {
    failure = run.hasBegun && turn.isStream ? toInterruption(thrown) : toCallerError(thrown)
    if (trace !== undefined) yield* trace.take()
    throw failure
  } finally {
    run.explain(reports)
    const releasing = run.release(failure, client)
    if (releasing !== undefined) await releasing
    run.reportSpent(reports)
  }
}

/**
 * Returns the name under which budgets count a turn's visitor. Counts anonymous visitors by address group,
 * because they can discard their tokens.
 */
async function nameVisitor({ metadata }: Context, { findVisitor }: Turn): Promise<string> {
  const visitor = await findVisitor()
  if (visitor !== undefined && visitor.kind !== 'anonymous') return visitor.id
  return `address ${addressGroup(metadata.clientAddress)}`
}

function toSpender(context: Context, turn: Turn, reports: TurnReports | undefined): Spender {
  const { agentId } = turn
  return {
    tenantId: context.caller.tenantId,
    agentId,
    findVisitor: agentId === undefined ? undefined : () => nameVisitor(context, turn),
    conversationId: reports?.conversationId,
  }
}

/** An answer that was ended at its limit is like one that the client has left. */
function endOf({ isEnded, isFinished }: ModelAnswer, end: AnswerEnd): AnswerEnd {
  if (isEnded) return 'cut'
  return isFinished ? 'whole' : end
}

class TurnRun {
  readonly attempts: Attempts
  readonly loop: ToolLoop
  /** Undefined for a turn that is not stored. */
  readonly diagnostics: TurnDiagnostics | undefined
  /** Undefined unless the playground asked for the steps. */
  readonly trace: TurnTrace | undefined
  hasBegun = false
  names: ModelAnswer['names']
  private readonly context: Context
  private readonly turn: Turn
  private readonly spender: Spender
  private releaseStreams: Release | undefined
  private deadline: Deadline | undefined
  private usage: UsageRecord | undefined
  private answer: ModelAnswer | undefined

  constructor(context: Context, turn: Turn, spender: Spender, reports: TurnReports | undefined) {
    this.context = context
    this.turn = turn
    this.spender = spender
    const diagnostics = reports && new TurnDiagnostics(context.deps.clock, turn)
    this.diagnostics = diagnostics
    this.attempts = new Attempts(
      context.deps,
      turn.routes,
      beginChatCalls(turn.span, turn.request),
      diagnostics && ((route) => diagnostics.skipped(route)),
    )
    const tools = watchTools(turn.tools, reports)
    this.loop = new ToolLoop(turn.request, tools, diagnostics && ((tool) => diagnostics.beginTool(tool)))
    this.trace = turn.isTraced ? new TurnTrace(context.deps.clock, turn) : undefined
  }

  async acquire(client: AbortSignal): Promise<{ usage: UsageRecord; deadline: Deadline }> {
    const { deps, metadata } = this.context
    const { request, routes, isStream } = this.turn
    const [{ backend, model }] = routes
    const { backendFirstEventMs, streamMaxMs, backendTotalMs } = deps.config.timings
    if (isStream) this.releaseStreams = await deps.shared.streams.acquire(streamQuotas(this.context))
    const deadline = isStream
      ? new Deadline(deps.clock, client, { firstEventMs: backendFirstEventMs, totalMs: streamMaxMs })
      : new Deadline(deps.clock, client, { firstEventMs: backendTotalMs, totalMs: backendTotalMs })
    this.deadline = deadline
    const usage = deps.usage.begin({
      operation: 'chat',
      requestId: metadata.requestId,
      ...this.spender,
      provider: backend.name,
      model,
      isStreamed: isStream,
      request,
    })
    this.usage = usage
    return { usage, deadline }
  }

  async ask(usage: UsageRecord, deadline: Deadline): Promise<ModelAnswer> {
    const { turn, context, loop, trace, attempts } = this
    const { deps } = context
    this.diagnostics?.beginRound()
    this.answer = await attempts.run(deadline, async (route, span, signal) => {
      const { backend, model } = route
      usage.calling(backend, model, loop.request)
      const limit = await usage.reserve(loop.request, signal)
      span?.set({ 'parley.budget.granted_tokens': limit?.tokens })
      if (signal.aborted) {
        usage.failCall('unused')
        throw signal.reason
      }
      const request = limitForProvider(loop.request, limit?.tokens, backend, usage.cost.price)
      // Only a stream can be ended at a number of bytes.
      const isCollected = !turn.isStream && limit?.metering === 'bytes'
      const body = backendBody(request, model, turn.isStream || isCollected)
      const ask = isCollected ? askAndCollect : turn.isStream ? askForStream : askForCompletion
      const endAttempt = trace?.beginAttempt(route, attempts.isFallback)
      const endDiagnosed = this.diagnostics?.beginAttempt(route)
      try {
        const answer = await ask(backend, { body, signal }, span, {
          choices: turn.request.n ?? 1,
          withholdsCalls: turn.tools !== undefined,
          limit,
          continued: this.names,
          newNames: () => newNames(deps, model),
          newCallId: () => newId('call_', 24, deps.random),
        })
        endAttempt?.()
        endDiagnosed?.()
        return answer
      } catch (thrown) {
        endAttempt?.(thrown)
        endDiagnosed?.(thrown)
        usage.failCall(toFailedCall(thrown, turn.isStream, backend))
        if (thrown instanceof BackendFailure)
          usage.addFailedAttempt({ provider: backend.name, model, reason: nameFailure(thrown) })
        throw thrown
      }
    })
    return this.answer
  }

  /** Commits to the current model, and sets the response headers that name it. */
  begin(reports: TurnReports | undefined): void {
    const { attempts, context } = this
    const { route, count, isFallback } = attempts
    this.hasBegun = true
    if (this.turn.isStream) this.deadline?.begin()
    attempts.commit()
    this.trace?.answering(route, count, isFallback)
    this.usage?.answering(route.backend.name, route.model)
    reports?.begun({ provider: route.backend.name, model: route.model, attempts: count })
    context.setHeader('X-Parley-Provider', route.backend.name)
    context.setHeader('X-Parley-Attempts', String(count))
    context.setHeader('X-Parley-Fallback', String(isFallback))
    if (this.turn.isDegraded) context.setHeader('X-Parley-Degraded', 'budget')
    if (this.usage?.isLimited) context.setHeader('X-Parley-Budget', 'limited')
  }

  /**
   * Adds the cost to the response for a parent key. The log of a stored turn does not contain it, because
   * visitors can read that log.
   */
  reportCost(reports: TurnReports | undefined): void {
    const { context, loop, turn, usage } = this
    if (usage === undefined) return
    const { isPriced } = usage.cost
    if (isPriced) context.metadata.instrumentation.span?.set({ 'parley.cost.usd': toUsd(usage.cost.total) })
    const mayShow = context.caller.kind === 'parent' && reports === undefined
    if (loop.usage !== undefined) {
      const changed = mayShow ? isPriced && addCost(loop.usage, usage.cost) : hideCost(loop.usage)
      if (changed) loop.replaceUsage(changed)
    }
    if (mayShow && !turn.isStream && isPriced)
      context.setHeader('X-Parley-Cost', renderFixedAmount(usage.cost.total))
  }

  /** Must be called when the usage record has ended, because an interrupted answer adds to the cost. */
  reportSpent(reports: TurnReports | undefined): void {
    const { usage } = this
    if (usage?.spent !== undefined) reports?.spent(usage.spent)
  }

  explain(reports: TurnReports | undefined): void {
    const { route, isFallback } = this.attempts
    const diagnostics = this.diagnostics?.render(route, isFallback, this.usage?.budget)
    if (diagnostics !== undefined) reports?.explained(diagnostics)
  }

  /**
   * Releases the turn's resources. Without a failure, an open usage record means that the client has
   * disconnected.
   */
  release(failure: unknown, client: AbortSignal): Promise<void> | undefined {
    this.deadline?.release()
    const isDone = failure === undefined && this.usage?.isEnded === true && !this.turn.isStream
    if (!isDone) return this.releaseOpen(failure, client)
    this.turn.endSpan(failure)
    return undefined
  }

  private async releaseOpen(failure: unknown, client: AbortSignal): Promise<void> {
    await this.releaseStreams?.()
    await this.answer?.close()
    if (failure === undefined) await this.usage?.end('left')
    else await this.usage?.fail(failure, client)
    this.turn.endSpan(failure)
  }
}
