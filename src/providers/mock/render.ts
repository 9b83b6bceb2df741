/** Renders the mock provider's answers as completions and as streams. */
import { type AnswerHead, eventEnd, openEvent, renderCompletion, renderUsageEvent } from '../render-answer.ts'
import type { Answer } from './answer.ts'
import { splitJson, wordAt } from './words.ts'

const fingerprint = 'fp_parley_mock'

export function renderWhole(answer: Answer, created: number): string {
  const content = answer.toolCalls.length > 0 ? null : answer.pieces.join('')
  const logprobs = renderLogprobs(answer, answer.pieces) ?? null
  const choices = Array.from({ length: answer.choiceCount }, (_, index) => ({
    index,
    message: {
      role: 'assistant',
      content,
      refusal: null,
      ...(answer.toolCalls.length > 0 && { tool_calls: renderToolCalls(answer, index) }),
    },
    logprobs,
    finish_reason: answer.finishReason,
  }))
  return renderCompletion(toHead(answer, created), choices, answer.usage)
}

export function* renderEvents(
  answer: Answer,
  created: number,
  hasUsage: boolean,
): Generator<string, void, void> {
  const { choiceCount, pieces } = answer
  const start = openEvent(toHead(answer, created))
  const hasCalls = answer.toolCalls.length > 0
  const callDeltas = Array.from({ length: hasCalls ? choiceCount : 0 }, (_, index) =>
    listCallDeltas(answer, index),
  )
  const role = JSON.stringify({ role: 'assistant', content: hasCalls ? null : '' })
  const steps = callDeltas[0]?.length ?? pieces.length
  for (let step = -1; step <= steps; step += 1) {
    const isLast = step === steps
    const piece = pieces[step]
    const delta = step === -1 ? role : piece === undefined ? '{}' : `{"content":${JSON.stringify(piece)}}`
    const logprobs = piece === undefined ? undefined : renderLogprobs(answer, [piece])
    const reason = isLast ? answer.finishReason : null
    const ending = `${logprobs === undefined ? '' : `,"logprobs":${JSON.stringify(logprobs)}`},"finish_reason":${JSON.stringify(reason)}}${eventEnd}`
    for (let index = 0; index < choiceCount; index += 1) {
      yield `${start}{"index":${index},"delta":${callDeltas[index]?.[step] ?? delta}${ending}`
    }
  }
  if (hasUsage) yield renderUsageEvent(start, answer.usage)
}

function toHead({ idText, model }: Answer, created: number): AnswerHead {
  return { id: `chatcmpl-${idText}`, created, model, system_fingerprint: fingerprint }
}

function listCallDeltas(answer: Answer, choice: number): readonly string[] {
  return renderToolCalls(answer, choice).flatMap(({ id, type, function: called }, index) => {
    const opening = { index, id, type, function: { name: called.name, arguments: '' } }
    const following = splitJson(called.arguments).map((piece) => ({ index, function: { arguments: piece } }))
    return [opening, ...following].map((call) => JSON.stringify({ tool_calls: [call] }))
  })
}

function renderToolCalls(answer: Answer, choice: number) {
  return answer.toolCalls.map(({ name, argumentsText }, index) => ({
    id: `call_${answer.idText.slice(0, 24)}${choice}_${index}`,
    type: 'function',
    function: { name, arguments: argumentsText },
  }))
}

function renderLogprobs({ alternativeCount, toolCalls }: Answer, pieces: readonly string[]) {
  if (alternativeCount === undefined || toolCalls.length > 0) return undefined
  const content = pieces.map((token) => {
    const logprob = -((token.length % 7) + 1) / 100
    const top_logprobs = Array.from({ length: alternativeCount }, (_, place) =>
      place === 0 ? renderToken(token, logprob) : renderToken(` ${wordAt(place)}`, logprob - place * 2),
    )
    return { ...renderToken(token, logprob), top_logprobs }
  })
  return { content, refusal: null }
}

function renderToken(token: string, logprob: number) {
  return { token, logprob, bytes: [...Buffer.from(token)] }
}
