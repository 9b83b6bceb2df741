/** Renders a page that embeds the widget frame and implements the loader's protocol. */

/** Returns the page's HTML; `frameOrigin` is the service's origin. */
export function hostPage(frameOrigin: string): string {
  return `<!doctype html>
<html lang="en"><head><title>A page</title><meta name="viewport" content="width=device-width, initial-scale=1">
<style>html, body { margin: 0; height: 100% } iframe { border: 0; width: 100%; height: 100vh; display: block }</style></head>
<body><script>(${page.toString()})(${JSON.stringify(frameOrigin)})</script></body></html>`
}

interface Given {
  readonly options: { readonly apiKey?: string }
  readonly context?: object
  readonly tools: object[]
  /** The key in the frame's URL; by default the public part of `apiKey`. */
  readonly address?: string
}

/** Runs in the page, so it cannot use this file's variables. */
function page(frameOrigin: string): void {
  // biome-ignore lint/suspicious/noExplicitAny: the page's own globals
  const here = globalThis as any
  here.said = []
  here.called = []
  here.tools = []
  here.session = 'session-1'
  here.answerTool = (name: string, args: unknown) => ({
    content: [{ type: 'text', text: JSON.stringify({ name, args }) }],
  })
  here.answerMcp = async ({
    id,
    method,
    params,
  }: {
    id?: string
    method: string
    params: Record<string, unknown>
  }) => {
    const reply = (result: unknown) =>
      here.port.postMessage({ type: 'mcp', message: { jsonrpc: '2.0', id, result } })
    if (method === 'initialize') {
      const serverInfo = { name: 'page', version: '1' }
      reply({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo })
    }
    if (method === 'tools/list') reply({ tools: here.tools })
    if (method === 'tools/call') {
      here.called.push({ name: params.name, args: params.arguments })
      const answer = await here.answerTool(params.name, params.arguments, id)
      if (answer !== undefined) reply(answer)
    }
  }
  here.connect = ({ options, context, tools, address }: Given) =>
    new Promise<void>((resolve) => {
      here.tools = tools
      const [publicPart = ''] = /^agnt_key-[0-9A-Za-z]{12}/.exec(options.apiKey ?? '') ?? []
      const frame = document.createElement('iframe')
      frame.title = 'Chat'
      frame.allow = 'clipboard-write'
      frame.src = `${frameOrigin}/embed/frame?key=${address ?? publicPart}`
      const hello = { protocol: 'parley/1', type: 'page-hello', session: here.session }
      frame.onload = () => frame.contentWindow?.postMessage(hello, frameOrigin)
      addEventListener('message', ({ source, data }) => {
        if (source !== frame.contentWindow || data?.type !== 'frame-hello') return
        const channel = new MessageChannel()
        here.port = channel.port1
        channel.port1.onmessage = ({ data: message }) => {
          here.said.push(message)
          if (message.type === 'mcp') void here.answerMcp(message.message)
          if (message.type === 'ready') {
            here.port.postMessage({ type: 'visibility', isOpen: true })
            resolve()
          }
        }
        const offer = { protocol: 'parley/1', type: 'port', session: here.session }
        frame.contentWindow?.postMessage(offer, frameOrigin, [channel.port2])
        here.port.postMessage({ type: 'configure', options })
        if (context !== undefined) here.port.postMessage({ type: 'context', context })
      })
      document.body.append(frame)
    })
}
