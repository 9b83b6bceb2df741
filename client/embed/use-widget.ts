/** The real widget on this page: loaded from this server, as any site would. */
import { type RefObject, useEffect, useState } from 'react'
import { type Looks, listChanges } from './appearance.ts'

interface WidgetApi {
  mount(options: object): void
  configure(options: object): void
  destroy(): void
  readonly ready: Promise<unknown>
}

declare global {
  interface Window {
    ParleyChat?: WidgetApi
    ParleyChatConfig?: object
  }
}

const loaderPath = '/embed/parley.js'

async function loadWidget(): Promise<WidgetApi> {
  window.ParleyChatConfig ??= { autoMount: false }
  await import(/* @vite-ignore */ loaderPath)
  if (window.ParleyChat === undefined) throw new Error('The widget could not be loaded.')
  return window.ParleyChat
}

interface WidgetPlace {
  readonly agentKey: string
  /** The id of the element it lives in; above the page without. */
  readonly containerId: string | undefined
  readonly looks: RefObject<Looks>
}

/** Shows the widget for as long as the component is there; says what went wrong. */
export function useWidget({ agentKey, containerId, looks }: WidgetPlace): string | undefined {
  const [problem, setProblem] = useState<string>()
  useEffect(() => {
    let isGone = false
    loadWidget()
      .then((widget) => {
        if (isGone) return
        widget.mount({
          ...toOptions(looks.current),
          apiKey: agentKey,
          widgetUrl: window.location.origin,
          history: false,
          ...(containerId === undefined ? {} : { containerId, autoOpen: true }),
        })
      })
      .catch((thrown: Error) => setProblem(thrown.message))
    return () => {
      isGone = true
      window.ParleyChat?.destroy()
    }
  }, [agentKey, containerId, looks])
  return problem
}

/** Lets the widget that is shown follow the controls. */
export function followLooks(looks: Looks): void {
  window.ParleyChat?.configure(toOptions(looks))
}

/** An empty text means the agent's own. */
function toOptions(looks: Looks): object {
  const { theme, position, primaryColor } = looks
  return { theme, position, primaryColor, ...Object.fromEntries(listChanges(looks)) }
}
