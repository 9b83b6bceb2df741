/** Loads a GGUF file into this process, by a package that is there only where somebody wants that. */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { basename } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { ChatWrapper, LlamaContextSequence, LlamaModel } from 'node-llama-cpp'
import type { LocalModelConfig } from '../config/config.ts'
import { StartupError } from '../lib/errors.ts'
import { type Library, openRuntime, type Runtime } from './in-process/runtime.ts'

/** How many answers are worked on at once; each holds a context of its own. */
const ANSWERS_AT_ONCE = 2
const MOST_CONTEXT_TOKENS = 8192

/** Where one answer at a time is worked on; what it read last is reused where the next prompt begins likewise. */
export interface Place {
  readonly sequence: LlamaContextSequence
  /** How many tokens of a prompt are read at once. */
  stepTokens: number
}

/** What a model can do beside embedding. */
export interface LocalChat {
  /** Writes conversations as the model's own template does. */
  readonly wrapper: ChatWrapper
  /** Whether that template has tools. */
  readonly hasTools: boolean
  readonly places: readonly Place[]
}

/** A model that is loaded. */
export interface LocalModel extends Runtime {
  /** The file's name without its ending. */
  readonly id: string
  /** When the file was last changed, in Unix seconds. */
  readonly created: number
  readonly model: LlamaModel
  readonly contextTokens: number
  readonly threads: number
  /** How many requests are worked on at once. */
  readonly placeCount: number
  /** Undefined for a model made for embeddings. */
  readonly chat: LocalChat | undefined
}

/** A file that may be a model. */
type FileFacts = Pick<LocalModel, 'id' | 'created'>

/**
 * Loads the model and makes its contexts; nothing is downloaded or compiled. Decision: 2 (`PARLEY_LOCAL_MODEL`).
 * @throws StartupError when the package or the file is not there or cannot be used.
 */
export async function loadLocalModel(config: LocalModelConfig): Promise<LocalModel> {
  const file = await readFacts(config)
  const runtime = await openRuntime(config.name)
  const model = await loadModel(runtime, config, false)
  const { threads = availableParallelism() } = config
  const contextTokens = Math.min(model.trainContextSize, config.contextTokens ?? MOST_CONTEXT_TOKENS)
  const base = { ...file, ...runtime, model, contextTokens, threads, placeCount: ANSWERS_AT_ONCE }
  try {
    return { ...base, chat: isForEmbeddings(model) ? undefined : await openChat(base) }
  } catch (thrown) {
    await model.dispose()
    throw cannotLoad(config, thrown, runtime)
  }
}

/**
 * Looks whether the model could be loaded, without reading its weights.
 * @throws StartupError as loading it does.
 */
export async function checkLocalModel(config: LocalModelConfig): Promise<void> {
  await readFacts(config)
  const model = await loadModel(await openRuntime(config.name), config, true)
  await model.dispose()
}

async function loadModel(
  runtime: Runtime,
  config: LocalModelConfig,
  vocabOnly: boolean,
): Promise<LlamaModel> {
  runtime.complaints.length = 0
  try {
    return await runtime.llama.loadModel({ modelPath: config.path, gpuLayers: 0, vocabOnly })
  } catch (thrown) {
    // What llama.cpp has said comes a turn later than what the library throws.
    await setImmediate()
    await setImmediate()
    throw cannotLoad(config, thrown, runtime)
  }
}

async function readFacts({ name, path }: LocalModelConfig): Promise<FileFacts> {
  const cannotUse = (what: string, cause?: unknown) =>
    new StartupError(`The model file ${path} (provider ${name}) ${what}.`, { cause })
  const file = await open(path, constants.O_RDONLY).catch((error: NodeJS.ErrnoException) => {
    throw cannotUse(error.code === 'ENOENT' ? 'is not there' : `cannot be read (${error.code})`, error)
  })
  try {
    const stats = await file.stat()
    if (!stats.isFile()) throw cannotUse('is no file')
    const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0)
    if (buffer.toString('latin1') !== 'GGUF') throw cannotUse('is not in the GGUF format')
    return { id: basename(path).replace(/\.gguf$/i, ''), created: Math.floor(stats.mtimeMs / 1000) }
  } finally {
    await file.close()
  }
}

/** Models made for embeddings say how their vectors are pooled; 0 is not at all. */
function isForEmbeddings({ fileInfo }: LlamaModel): boolean {
  const { pooling_type: pooling } = fileInfo.architectureMetadata as { pooling_type?: number }
  return pooling !== undefined && pooling !== 0
}

async function openChat({
  library,
  model,
  contextTokens,
  threads,
  placeCount,
}: Omit<LocalModel, 'chat'>): Promise<LocalChat> {
  const template = model.fileInfo.metadata.tokenizer.chat_template ?? ''
  const wrapper = library.resolveChatWrapper(model, {
    type: marksOfKnownFamilies.test(template) ? 'auto' : 'jinjaTemplate',
    warningLogs: false,
    fallbackToOtherWrappersOnJinjaError: false,
  })
  const context = await model.createContext({ contextSize: contextTokens, sequences: placeCount, threads })
  const places = Array.from({ length: placeCount }, () => ({
    sequence: context.getSequence(),
    stepTokens: 32,
  }))
  return { wrapper, hasTools: hasOwnTools(wrapper, library), places }
}

/**
 * Templates of models whose answers have a form of their own (gpt-oss's channels, Llama 3's and DeepSeek's calls), which the library
 * reads by code of its own. Finding the right one takes it a second of the whole process; any other model's template says it all.
 */
const marksOfKnownFamilies = /<\|(channel|python_tag|recipient|from|turn)\b|<｜tool|<seed:/

/** Where a template has no tools the library makes up a syntax for them, which no such model has learnt. */
function hasOwnTools(
  wrapper: ChatWrapper,
  { ChatWrapper: Base, JinjaTemplateChatWrapper }: Library,
): boolean {
  if (wrapper instanceof JinjaTemplateChatWrapper) return wrapper.usingJinjaFunctionCallTemplate
  return wrapper.settings.functions.call.prefix !== Base.defaultSettings.functions.call.prefix
}

function cannotLoad(
  { name, path }: LocalModelConfig,
  cause: unknown,
  { library, complaints }: Runtime,
): StartupError {
  const subject = `The model file ${path} (provider ${name})`
  if (cause instanceof library.InsufficientMemoryError) {
    const sentence = `${subject} needs more memory than there is; a smaller context (PARLEY_LOCAL_CONTEXT) needs less.`
    return new StartupError(sentence, { cause })
  }
  const said = [...new Set(complaints)].join(' ')
  const reason =
    /error loading model: (.*?)( llama_|$)/s.exec(said)?.[1] ?? (said || String((cause as Error).message))
  const short = reason.replaceAll(/\s+/g, ' ').slice(0, 300).replace(/\.+$/, '')
  return new StartupError(`${subject} cannot be loaded: ${short}.`, { cause })
}
