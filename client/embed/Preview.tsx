/** Shows a live preview of the widget with controls for its appearance. */
import { Alert, ColorInput, SegmentedControl, Stack, Switch, Text, TextInput, Title } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { type RefObject, useEffect, useRef, useState } from 'react'
import { MockNotice } from '../first-run/MockNotice.tsx'
import { type Looks, listChanges } from './appearance.ts'

interface PreviewProps {
  readonly agentKey: string
  readonly looks: Looks
  readonly onChange: (looks: Looks) => void
}

export function Preview({ agentKey, looks, onChange }: PreviewProps) {
  const [isFloating, setIsFloating] = useState(false)
  return (
    <Stack gap="sm" component="section" className="panel" p="md" aria-label="Preview">
      <Title order={2}>Preview</Title>
      <MockNotice />
      <div className="preview">
        <Controls looks={looks} onChange={onChange} isFloating={isFloating} onFloat={setIsFloating} />
        <Stage key={String(isFloating)} agentKey={agentKey} looks={looks} isFloating={isFloating} />
      </div>
    </Stack>
  )
}

const CONTAINER = 'widget-preview'
const PAUSE_MS = 250

function Stage({
  agentKey,
  looks,
  isFloating,
}: Omit<PreviewProps, 'onChange'> & { readonly isFloating: boolean }) {
  const latest = useRef(looks)
  latest.current = looks
  const problem = useWidget({ agentKey, containerId: isFloating ? undefined : CONTAINER, looks: latest })
  const [settled] = useDebouncedValue(looks, PAUSE_MS)
  useEffect(() => configureWidget(settled), [settled])
  if (problem !== undefined) {
    return (
      <Alert color="red" role="alert">
        {problem}
      </Alert>
    )
  }
  if (!isFloating) return <div id={CONTAINER} className="preview-stage" />
  return (
    <div className="preview-stage preview-hint">
      <Text size="sm" c="dimmed" ta="center" p="xl">
        The chat button is at the bottom of this window, as it will be on your page.
      </Text>
    </div>
  )
}

interface ControlsProps {
  readonly looks: Looks
  readonly onChange: (looks: Looks) => void
  readonly isFloating: boolean
  readonly onFloat: (isFloating: boolean) => void
}

function Controls({ looks, onChange, isFloating, onFloat }: ControlsProps) {
  const set = (changes: Partial<Looks>) => onChange({ ...looks, ...changes })
  return (
    <Stack gap="sm">
      <SegmentedControl
        aria-label="Widget theme"
        data={[
          { value: 'auto', label: 'Auto' },
          { value: 'light', label: 'Light' },
          { value: 'dark', label: 'Dark' },
        ]}
        value={looks.theme}
        onChange={(theme) => set({ theme: theme as Looks['theme'] })}
      />
      <ColorInput
        label="Color"
        format="hex"
        value={looks.primaryColor}
        onChange={(primaryColor) => set({ primaryColor })}
        eyeDropperButtonProps={{ 'aria-label': 'Pick a color from the screen' }}
      />
      <LookText name="title" label="Title" looks={looks} set={set} />
      <LookText name="greeting" label="Greeting" looks={looks} set={set} />
      <LookText name="welcomeMessage" label="Welcome message" looks={looks} set={set} />
      <LookText name="placeholder" label="Placeholder" looks={looks} set={set} />
      <Switch
        label="Show as a floating button"
        checked={isFloating}
        onChange={(event) => onFloat(event.currentTarget.checked)}
      />
      {isFloating ? (
        <SegmentedControl
          aria-label="Position"
          data={[
            { value: 'bottom-left', label: 'Left' },
            { value: 'bottom-right', label: 'Right' },
          ]}
          value={looks.position}
          onChange={(position) => set({ position: position as Looks['position'] })}
        />
      ) : null}
      <Switch
        label="Open automatically"
        checked={looks.autoOpen}
        onChange={(event) => set({ autoOpen: event.currentTarget.checked })}
      />
    </Stack>
  )
}

/** Placeholders that describe each text's default. */
const withoutText = {
  title: 'From the definition',
  greeting: 'From the definition',
  welcomeMessage: 'None (shown above an empty chat)',
  placeholder: 'Type a message...',
} as const

interface LookTextProps {
  readonly name: keyof typeof withoutText
  readonly label: string
  readonly looks: Looks
  readonly set: (changes: Partial<Looks>) => void
}

function LookText({ name, label, looks, set }: LookTextProps) {
  return (
    <TextInput
      label={label}
      placeholder={withoutText[name]}
      value={looks[name]}
      onChange={(event) => set({ [name]: event.currentTarget.value })}
    />
  )
}

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
  if (window.ParleyChat === undefined)
    throw new Error('The widget could not be loaded. Reload the page to try again.')
  return window.ParleyChat
}

interface WidgetPlace {
  readonly agentKey: string
  /** The container element's id; without it, the widget floats above the page. */
  readonly containerId: string | undefined
  readonly looks: RefObject<Looks>
}

/** Mounts the widget for the component's lifetime; returns the error message if loading fails. */
function useWidget({ agentKey, containerId, looks }: WidgetPlace): string | undefined {
  const [problem, setProblem] = useState<string>()
  useEffect(() => {
    let isUnmounted = false
    loadWidget()
      .then((widget) => {
        if (isUnmounted) return
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
      isUnmounted = true
      window.ParleyChat?.destroy()
    }
  }, [agentKey, containerId, looks])
  return problem
}

function configureWidget(looks: Looks): void {
  window.ParleyChat?.configure(toOptions(looks))
}

/** Omits empty texts, so that the widget shows the definition's texts. */
function toOptions(looks: Looks): object {
  const { theme, position, primaryColor } = looks
  return { theme, position, primaryColor, ...Object.fromEntries(listChanges(looks)) }
}
