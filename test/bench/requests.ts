/** Builds the benchmark's HTTP requests and checks the responses. */

const persona =
  'You help visitors of a small garden shop. Answer in plain words, name the plant first, then what it needs: light, ' +
  'water, soil. When you do not know, say so and offer to ask a colleague.'

const messages = [
  { role: 'system', content: persona },
  {
    role: 'user',
    content: 'Which herbs stand a dry balcony that gets sun from noon until late in the evening?',
  },
  {
    role: 'assistant',
    content: 'Thyme, rosemary and sage stand it well. Do you have deep pots or shallow ones?',
  },
  {
    role: 'user',
    content: 'Shallow ones, about fifteen centimetres. Please explain how often I should water.',
  },
]

/** The definition of the benchmark's agent. */
export const agentYaml = `name: Garden helper
model: bench-model
temperature: 0.4
instructions: ${JSON.stringify(persona)}
behavior:
  tone: friendly
  rules:
    - Never recommend a poisonous plant.
`

/** Builds a chat completion request with four messages. */
export function chatRequest(
  key: string,
  options: { model?: string; stream: boolean; maxTokens?: number },
): Buffer {
  const { model, stream, maxTokens = 400 } = options
  const body = JSON.stringify({
    model,
    messages,
    temperature: 0.4,
    max_tokens: maxTokens,
    ...(stream && { stream }),
  })
  return post('/v1/chat/completions', key, body)
}

/** Builds an embeddings request for 64 vectors. */
export function embeddingsRequest(key: string, model: string, encoding: 'float' | 'base64'): Buffer {
  const input = Array.from({ length: 64 }, (_, index) => `${index}. ${persona.slice(0, 40)}`)
  return post('/v1/embeddings', key, JSON.stringify({ model, input, encoding_format: encoding }))
}

export function post(path: string, key: string, body: string): Buffer {
  const head = [
    `POST ${path} HTTP/1.1`,
    'host: 127.0.0.1',
    `authorization: Bearer ${key}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}

export function modelsRequest(key: string): Buffer {
  return Buffer.from(`GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\n\r\n`)
}

/** Returns whether the body is the model provider's fixed response. */
export function isCompletion(body: unknown): boolean {
  const { object, choices, usage } = body as {
    object?: unknown
    choices?: { message?: { content?: string }; finish_reason?: string }[]
    usage?: { total_tokens?: number }
  }
  const [choice] = choices ?? []
  const isWhole = choice?.message?.content?.startsWith('A plain answer') && choice.finish_reason === 'stop'
  return object === 'chat.completion' && isWhole === true && usage?.total_tokens === 328
}

/** Returns whether the body lists at least the model provider's 50 models. */
export function isModelList(body: unknown): boolean {
  const { object, data } = body as { object?: unknown; data?: { id?: string }[] }
  const ids = new Set(data?.map((model) => model.id))
  return object === 'list' && ids.size >= 50 && ids.has('bench-model') && ids.has('bench-model-50')
}

/** Returns whether the body contains 64 vectors of 1,536 numbers, in either encoding. */
export function isEmbeddingList(body: unknown): boolean {
  const { object, data } = body as { object?: unknown; data?: { index?: number; embedding?: unknown }[] }
  const isWhole = (embedding: unknown) =>
    Array.isArray(embedding)
      ? embedding.length === 1536
      : Buffer.from(String(embedding), 'base64').length === 4 * 1536
  return (
    object === 'list' &&
    data?.length === 64 &&
    data.every(({ index, embedding }, place) => index === place && isWhole(embedding))
  )
}
