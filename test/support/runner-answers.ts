/** Provides responses in the exact format of Ollama and of llama.cpp's llama-server. */

const ollamaHead = {
  id: 'chatcmpl-553',
  created: 1_757_141_666,
  model: 'llama3.2',
  system_fingerprint: 'fp_ollama',
}

/** Returns an Ollama chunk; Ollama repeats the role in each chunk. */
function ollamaChunk(delta: object, finish_reason: string | null = null): object {
  const choice = { index: 0, delta: { role: 'assistant', content: '', ...delta }, finish_reason }
  return { ...ollamaHead, object: 'chat.completion.chunk', choices: [choice] }
}

const ollamaUsage = { prompt_tokens: 26, completion_tokens: 3, total_tokens: 29 }
const weatherCall = {
  id: 'call_y9wzw3f8',
  index: 0,
  type: 'function',
  function: { name: 'get_weather', arguments: '{"city":"Paris"}' },
}

function ollamaError(message: string, type: string) {
  return { error: { message, type, param: null, code: null } }
}

export const ollama = {
  models: {
    object: 'list',
    data: [
      { id: 'llama3.2:latest', object: 'model', created: 1_757_000_000, owned_by: 'library' },
      { id: 'qwen3:8b', object: 'model', created: 1_757_000_001, owned_by: 'library' },
      { id: 'bge-m3:latest', object: 'model', created: 1_757_000_002, owned_by: 'library' },
    ],
  },
  /** The model list before a model is pulled. */
  noModels: { object: 'list', data: null },
  completion: {
    ...ollamaHead,
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'Good evening.', reasoning: 'A greeting.' },
        finish_reason: 'stop',
      },
    ],
    usage: ollamaUsage,
  },
  chunks: [
    ollamaChunk({ reasoning: 'A greeting.' }),
    ollamaChunk({ content: 'Good' }),
    ollamaChunk({ content: ' evening.' }),
    ollamaChunk({}, 'stop'),
    { ...ollamaHead, object: 'chat.completion.chunk', choices: [], usage: ollamaUsage },
  ],
  toolChunks: [
    ollamaChunk({ tool_calls: [weatherCall] }),
    ollamaChunk({}, 'tool_calls'),
    { ...ollamaHead, object: 'chat.completion.chunk', choices: [], usage: ollamaUsage },
  ],
  /** A failed stream: Ollama writes an empty chunk instead of the error, and stops. */
  brokenChunks: [
    ollamaChunk({ content: 'Good' }),
    { ...ollamaChunk({}), created: -62_135_596_800, model: '' },
  ],
  embeddings: {
    object: 'list',
    data: [{ object: 'embedding', embedding: [0.6, -0.8], index: 0 }],
    model: 'bge-m3',
    usage: { prompt_tokens: 2, total_tokens: 2 },
  },
  gone: ollamaError('model "llama3.2" not found, try pulling it first', 'not_found_error'),
  noTools: ollamaError(
    'registry.ollama.ai/library/llama3.2:latest does not support tools',
    'invalid_request_error',
  ),
  cannotEmbed: ollamaError('this model does not support embeddings', 'api_error'),
  tooLong: ollamaError('the input length exceeds the context length', 'api_error'),
  busy: ollamaError('server busy, please try again.  maximum pending requests exceeded', 'api_error'),
}

const llamaHead = {
  created: 1_757_141_666,
  id: 'chatcmpl-ecQULm0WqPrftUqjPZO1CFYeDjGZNbDu',
  model: 'anything',
  system_fingerprint: 'b6390-3c3635d2',
  object: 'chat.completion.chunk',
}
const timings = { cache_n: 0, prompt_n: 44, prompt_ms: 30.958, predicted_n: 3, predicted_ms: 661.064 }

/** Returns a llama-server chunk; it writes the finish reason before the index. */
function llamaChunk(delta: object, finish_reason: string | null = null): object {
  return { choices: [{ finish_reason, index: 0, delta }], ...llamaHead }
}

export const llamaServer = {
  models: {
    models: [{ name: '../models/Llama-3.1-8B-Q4_K_M.gguf', model: '../models/Llama-3.1-8B-Q4_K_M.gguf' }],
    object: 'list',
    data: [
      {
        id: '../models/Llama-3.1-8B-Q4_K_M.gguf',
        object: 'model',
        created: 1_735_142_223,
        owned_by: 'llamacpp',
        meta: { vocab_type: 2, n_vocab: 128_256, n_ctx_train: 131_072, n_embd: 4096, size: 4_912_898_304 },
      },
    ],
  },
  chunks: [
    llamaChunk({ role: 'assistant', content: null }),
    llamaChunk({ reasoning_content: 'A greeting.' }),
    llamaChunk({ content: 'Good' }),
    llamaChunk({ content: ' evening.' }),
    llamaChunk({}, 'stop'),
    {
      choices: [],
      ...llamaHead,
      usage: { completion_tokens: 3, prompt_tokens: 44, total_tokens: 47 },
      timings,
    },
  ],
  toolChunks: [
    llamaChunk({ role: 'assistant', content: null }),
    llamaChunk({
      tool_calls: [
        { index: 0, id: 'tJqQ', type: 'function', function: { name: 'get_weather', arguments: '{' } },
      ],
    }),
    llamaChunk({ tool_calls: [{ index: 0, function: { arguments: '"city":"Paris"}' } }] }),
    llamaChunk({}, 'tool_calls'),
    {
      choices: [],
      ...llamaHead,
      usage: { completion_tokens: 3, prompt_tokens: 44, total_tokens: 47 },
      timings,
    },
  ],
  brokenChunks: [
    llamaChunk({ role: 'assistant', content: null }),
    llamaChunk({ content: 'Good' }),
    { error: { code: 500, message: 'Context size has been exceeded.', type: 'server_error' } },
  ],
  loading: { error: { message: 'Loading model', type: 'unavailable_error', code: 503 } },
  tooLong: {
    error: {
      code: 400,
      message: 'request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it',
      type: 'exceed_context_size_error',
      n_prompt_tokens: 9000,
      n_ctx: 4096,
    },
  },
  cannotEmbed: {
    error: {
      code: 501,
      message: 'This server does not support embeddings. Start it with `--embeddings`',
      type: 'not_supported_error',
    },
  },
}
