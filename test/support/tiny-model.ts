/** Writes a tiny llama model with random weights. Its responses consist of printable ASCII characters. */
import { writeFileSync } from 'node:fs'
import { type GgufTensor, type GgufValue, renderGguf } from './gguf.ts'
import { createRandom } from './random.ts'
import { chatMlWithTools } from './tiny-template.ts'

export interface TinyModelOptions {
  /** The seed of the weights. */
  readonly seed?: number
  /**
   * Higher values make responses shorter: -100 never ends, 10 (default) ends after dozens of letters, 100
   * ends immediately.
   */
  readonly brevity?: number
  readonly chatTemplate?: string | null
  /** The context length in tokens; 2048 by default. */
  readonly contextLength?: number
  /** GGUF's pooling type, which makes it an embedding model; 1 is the mean. */
  readonly poolingType?: number
  /** Makes the model respond with reasoning only. */
  readonly thinks?: boolean
}

const width = 64
const feedForward = 128
const layers = 2
const heads = 4
const headWidth = width / heads

const endOfTurn = '<|im_end|>'
/**
 * The start of a tool call is a single token, because random weights would never produce it letter by letter.
 */
const marks = {
  offered: '<tools>',
  answered: '<tool_response>',
  call: '<tool_call>\n{"name": "',
  callEnd: '</tool_call>',
  think: '<think>',
}
/** GGUF's token types. */
const kinds = { normal: 1, unknown: 2, control: 3, userDefined: 4, byte: 6 }

/** Returns the number of tokens in a text without marks. */
export function countTinyTokens(text: string): number {
  return Buffer.byteLength(text)
}

/** Writes a model file of less than 1 MiB. */
export function writeTinyModel(path: string, options: TinyModelOptions = {}): void {
  writeFileSync(path, makeTinyModel(options))
}

export function makeTinyModel(options: TinyModelOptions = {}): Buffer {
  const tokens = listTokens()
  return renderGguf(makeMetadata(tokens, options), makeTensors(tokens, options))
}

interface TinyToken {
  readonly text: string
  readonly kind: number
}

function listTokens(): TinyToken[] {
  const bytes = Array.from({ length: 256 }, (_, value) => ({
    text: `<0x${value.toString(16).toUpperCase().padStart(2, '0')}>`,
    kind: kinds.byte,
  }))
  return [
    { text: '<unk>', kind: kinds.unknown },
    { text: '<s>', kind: kinds.control },
    { text: '</s>', kind: kinds.control },
    ...bytes,
    // The token that represents a space.
    { text: '\u2581', kind: kinds.normal },
    { text: '<|im_start|>', kind: kinds.control },
    { text: endOfTurn, kind: kinds.control },
    ...Object.values(marks).map((text) => ({ text, kind: kinds.userDefined })),
  ]
}

function makeMetadata(
  tokens: readonly TinyToken[],
  { chatTemplate = chatMlWithTools, contextLength = 2048, poolingType }: TinyModelOptions,
): Record<string, GgufValue> {
  const count = (value: number): GgufValue => ({ type: 'uint32', value })
  const text = (value: string): GgufValue => ({ type: 'string', value })
  const no: GgufValue = { type: 'bool', value: false }
  const idOf = (name: string) => count(tokens.findIndex((token) => token.text === name))
  return {
    'general.architecture': text('llama'),
    'general.name': text('tiny'),
    'general.file_type': count(0),
    'llama.context_length': count(contextLength),
    'llama.embedding_length': count(width),
    'llama.block_count': count(layers),
    'llama.feed_forward_length': count(feedForward),
    'llama.attention.head_count': count(heads),
    'llama.attention.head_count_kv': count(heads),
    'llama.attention.layer_norm_rms_epsilon': { type: 'float32', value: 1e-5 },
    'llama.rope.dimension_count': count(headWidth),
    'llama.vocab_size': count(tokens.length),
    ...(poolingType !== undefined && { 'llama.pooling_type': count(poolingType) }),
    'tokenizer.ggml.model': text('llama'),
    'tokenizer.ggml.tokens': { type: 'array', of: 'string', value: tokens.map((token) => token.text) },
    'tokenizer.ggml.scores': { type: 'array', of: 'float32', value: tokens.map(() => 0) },
    'tokenizer.ggml.token_type': { type: 'array', of: 'int32', value: tokens.map(({ kind }) => kind) },
    'tokenizer.ggml.bos_token_id': idOf('<s>'),
    'tokenizer.ggml.eos_token_id': idOf(endOfTurn),
    'tokenizer.ggml.unknown_token_id': idOf('<unk>'),
    'tokenizer.ggml.add_bos_token': no,
    'tokenizer.ggml.add_eos_token': no,
    'tokenizer.ggml.add_space_prefix': no,
    ...(chatTemplate !== null && { 'tokenizer.chat_template': text(chatTemplate) }),
  }
}

/** Builds random weights, plus the weights that make the model call tools and end its turns. */
function makeTensors(tokens: readonly TinyToken[], options: TinyModelOptions): GgufTensor[] {
  const random = createRandom(options.seed ?? 2)
  const matrix = (name: string, columns: number, rows: number, scale: number): GgufTensor => ({
    name: `${name}.weight`,
    columns,
    rows,
    data: Float32Array.from({ length: columns * rows }, () => (random() * 2 - 1) * scale),
  })
  const norm = (name: string): GgufTensor => {
    return { name: `${name}.weight`, columns: width, rows: 1, data: new Float32Array(width).fill(1) }
  }
  const embedding = matrix('token_embd', width, tokens.length, 1)
  const output = matrix('output', width, tokens.length, 1)
  const blocks = Array.from({ length: layers }, (_, layer) => ({
    attentionNorm: norm(`blk.${layer}.attn_norm`),
    query: matrix(`blk.${layer}.attn_q`, width, width, 0.5),
    key: matrix(`blk.${layer}.attn_k`, width, width, 0.5),
    value: matrix(`blk.${layer}.attn_v`, width, width, 0.3),
    mix: matrix(`blk.${layer}.attn_output`, width, width, 0.3),
    feedNorm: norm(`blk.${layer}.ffn_norm`),
    gate: matrix(`blk.${layer}.ffn_gate`, width, feedForward, 0.3),
    up: matrix(`blk.${layer}.ffn_up`, width, feedForward, 0.3),
    down: matrix(`blk.${layer}.ffn_down`, feedForward, width, 0.3),
  }))
  giveMeaning(tokens, embedding, output, options.brevity ?? 10)
  if (options.thinks)
    put(
      output,
      tokens.findIndex(({ text }) => text === marks.think),
      columns.always,
      100,
    )
  for (const { mix, down } of blocks) {
    for (const column of Object.values(columns)) for (const tensor of [mix, down]) clearRow(tensor, column)
  }
  lookBack(blocks[0] as LookingBlock)
  return [embedding, ...blocks.flatMap((block) => Object.values(block)), norm('output_norm'), output]
}

/**
 * The columns that random weights do not use; each is 1 for, or after, certain tokens (`always`: all tokens).
 */
const columns = { always: 0, offered: 1, answered: 2, sawOffered: 3, sawAnswered: 4, called: 5 }

function giveMeaning(
  tokens: readonly TinyToken[],
  embedding: GgufTensor,
  output: GgufTensor,
  brevity: number,
): void {
  for (const [row, { text }] of tokens.entries()) {
    for (const column of Object.values(columns))
      for (const table of [embedding, output]) put(table, row, column, 0)
    put(embedding, row, columns.always, 1)
    put(embedding, row, columns.offered, Number(text === marks.offered))
    put(embedding, row, columns.answered, Number(text === marks.answered))
    put(embedding, row, columns.called, Number(text === marks.callEnd))
    put(output, row, columns.always, mayBeSaid(text) ? 0 : -100)
    if (text === endOfTurn) {
      put(output, row, columns.always, brevity)
      put(output, row, columns.called, 3000)
    }
    if (text === marks.call) {
      clearRow(output, row)
      put(output, row, columns.always, -100)
      put(output, row, columns.sawOffered, 300)
      put(output, row, columns.sawAnswered, -600)
    }
  }
}

type LookingBlock = Readonly<Record<'query' | 'key' | 'value' | 'mix', GgufTensor>>

/**
 * Makes two attention heads each look for a mark, in the dimensions that the position encoding rotates least.
 */
function lookBack({ query, key, value, mix }: LookingBlock): void {
  const looks = [
    [columns.offered, columns.sawOffered],
    [columns.answered, columns.sawAnswered],
  ] as const
  for (const [head, [mark, saw]] of looks.entries()) {
    const first = head * headWidth
    for (let row = first; row < first + headWidth; row++) {
      for (const tensor of [query, key, value]) clearRow(tensor, row)
    }
    put(query, first + headWidth - 2, columns.always, 20)
    put(key, first + headWidth - 2, mark, 20)
    put(value, first, mark, 1)
    put(mix, saw, first, 1)
  }
}

/** Returns whether a response may contain the token: printable ASCII or a space. */
function mayBeSaid(text: string): boolean {
  const byte = /^<0x(..)>$/.exec(text)?.[1]
  if (byte === undefined) return text === '\u2581'
  const value = Number.parseInt(byte, 16)
  return value > 0x20 && value < 0x7f
}

function put(tensor: GgufTensor, row: number, column: number, value: number): void {
  tensor.data[row * tensor.columns + column] = value
}

function clearRow(tensor: GgufTensor, row: number): void {
  tensor.data.fill(0, row * tensor.columns, (row + 1) * tensor.columns)
}
