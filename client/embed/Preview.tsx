/** The widget as it will look, with what one can set of it. */
import { Alert, ColorInput, SegmentedControl, Stack, Switch, Text, TextInput, Title } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useEffect, useRef, useState } from 'react'
import type { Looks } from './appearance.ts'
import { followLooks, useWidget } from './use-widget.ts'

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
  useEffect(() => followLooks(settled), [settled])
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
        The button is at the bottom of this window, as it would be on your page.
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
        aria-label="Theme of the widget"
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
      <LookText name="welcomeMessage" label="Welcome" looks={looks} set={set} />
      <LookText name="placeholder" label="Placeholder" looks={looks} set={set} />
      <Switch
        label="As a button above the page"
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
        label="Opens by itself"
        checked={looks.autoOpen}
        onChange={(event) => set({ autoOpen: event.currentTarget.checked })}
      />
    </Stack>
  )
}

/** What the widget shows where nothing is set. */
const withoutText = {
  title: 'the agent’s own',
  greeting: 'the agent’s own',
  welcomeMessage: 'none; shown above an empty chat',
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
