/** Lists the providers that the console and the CLI suggest, with their base URLs. */

export interface ProviderPreset {
  /** The suggested name of the provider. */
  readonly id: string
  readonly title: string
  readonly kind: 'gateway' | 'local'
  readonly baseUrl: string
  readonly needsKey: boolean
  /** The page where users create API keys; undefined for a server that the user runs. */
  readonly keysUrl?: string
  /** One sentence about using the provider. */
  readonly hint?: string
}

export const providerPresets = [
  {
    id: 'openai',
    title: 'OpenAI',
    kind: 'gateway',
    baseUrl: 'https://api.openai.com/v1',
    needsKey: true,
    keysUrl: 'https://platform.openai.com/api-keys',
  },
  {
    id: 'anthropic',
    title: 'Anthropic',
    kind: 'gateway',
    baseUrl: 'https://api.anthropic.com/v1',
    needsKey: true,
    keysUrl: 'https://platform.claude.com/settings/keys',
  },
  {
    id: 'google',
    title: 'Google Gemini',
    kind: 'gateway',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
    needsKey: true,
    keysUrl: 'https://aistudio.google.com/apikey',
  },
  {
    id: 'openrouter',
    title: 'OpenRouter',
    kind: 'gateway',
    baseUrl: 'https://openrouter.ai/api/v1',
    needsKey: true,
    keysUrl: 'https://openrouter.ai/settings/keys',
    hint: 'OpenRouter lists its models even without a key, so the test does not check the key.',
  },
  {
    id: 'ollama',
    title: 'Ollama',
    kind: 'local',
    baseUrl: 'http://127.0.0.1:11434/v1',
    needsKey: false,
    hint: 'Download a model first, for example with "ollama pull llama3.2".',
  },
  {
    id: 'vllm',
    title: 'vLLM',
    kind: 'gateway',
    baseUrl: 'http://127.0.0.1:8000/v1',
    needsKey: false,
    hint: 'The key is the value of --api-key, if you set it.',
  },
  {
    id: 'llama-server',
    title: 'llama-server',
    kind: 'local',
    baseUrl: 'http://127.0.0.1:8080/v1',
    needsKey: false,
    hint: 'The key is the value of --api-key, if you set it.',
  },
] as const satisfies readonly ProviderPreset[]
