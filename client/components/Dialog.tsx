/** Provides dialogs, forms in dialogs, confirmation dialogs and the guard for unsaved changes. */
import {
  Alert,
  Button,
  CloseButton,
  Code,
  Group,
  getDefaultZIndex,
  Modal,
  type ModalRootProps,
  Stack,
  Text,
  TextInput,
} from '@mantine/core'
import { useBlocker } from '@tanstack/react-router'
import { type FormEvent, type ReactNode, type RefObject, useEffect, useRef, useState } from 'react'
import { problemOf } from '../failure.ts'
import { t } from '../strings/language.ts'
import { rich } from '../strings/rich.tsx'
import { RequestId } from './RequestId.tsx'

interface DialogProps {
  readonly title: string
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly size?: ModalRootProps['size']
  /** Shows this dialog above all others, even those opened later. */
  readonly isAboveAll?: boolean
  readonly children: ReactNode
}

/**
 * Renders its own header, because the library's header adds a landmark. Large dialogs are aligned to the top,
 * so that they do not move as they grow.
 */
export function Dialog({ title, isOpen, onClose, size = 'md', isAboveAll = false, children }: DialogProps) {
  useEscape(isOpen, onClose)
  return (
    <Modal.Root
      opened={isOpen}
      onClose={onClose}
      size={size}
      zIndex={getDefaultZIndex(isAboveAll ? 'popover' : 'modal')}
      closeOnEscape={false}
      centered={size !== 'xl'}
    >
      <Modal.Overlay />
      <Modal.Content>
        <Modal.Body>
          <Group justify="space-between" wrap="nowrap" mb="md">
            <Modal.Title fw={600}>{title}</Modal.Title>
            <CloseButton aria-label={t('common.close')} onClick={onClose} />
          </Group>
          {children}
        </Modal.Body>
      </Modal.Content>
    </Modal.Root>
  )
}

interface FormProps {
  readonly onSubmit: () => Promise<unknown>
  readonly onCancel: () => void
  /** Label of the submit button. */
  readonly action: string
  readonly isReady?: boolean
  readonly isDangerous?: boolean | undefined
  readonly children: ReactNode
}

/** Shows a form with submit and cancel buttons; must be inside a `Dialog`. */
export function DialogForm({ onSubmit, onCancel, action, isReady = true, isDangerous, children }: FormProps) {
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setIsBusy] = useState(false)

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault()
    setIsBusy(true)
    setError(null)
    try {
      await onSubmit()
    } catch (thrown) {
      setError(thrown)
    } finally {
      setIsBusy(false)
    }
  }

  const problem = problemOf(error)
  return (
    <form onSubmit={(event) => void submit(event)}>
      <Stack gap="md">
        {children}
        {problem === undefined ? null : (
          <Alert color="red" role="alert">
            {problem}
            <RequestId error={error} />
          </Alert>
        )}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onCancel}>
            {t('common.cancel')}
          </Button>
          <Button
            type="submit"
            color={isDangerous ? 'red.8' : undefined}
            disabled={!isReady}
            loading={isBusy}
          >
            {action}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}

interface ConfirmDialogProps {
  readonly title: string
  readonly isOpen: boolean
  readonly onClose: () => void
  /** If the promise rejects, the dialog stays open and shows the error. */
  readonly onConfirm: () => Promise<unknown>
  /** Label of the submit button. */
  readonly action: string
  readonly isDangerous?: boolean
  /** Text that the user must type to confirm. */
  readonly typed?: string
  readonly children: ReactNode
}

export function ConfirmDialog(props: ConfirmDialogProps) {
  return (
    <Dialog title={props.title} isOpen={props.isOpen} onClose={props.onClose}>
      <ConfirmForm {...props} />
    </Dialog>
  )
}

/** A separate component, so that closing the dialog discards the typed text. */
function ConfirmForm({ onClose, onConfirm, action, isDangerous, typed, children }: ConfirmDialogProps) {
  const [text, setText] = useState('')
  const confirm = async () => {
    await onConfirm()
    onClose()
  }
  return (
    <DialogForm
      onSubmit={confirm}
      onCancel={onClose}
      action={action}
      isReady={typed === undefined || text === typed}
      isDangerous={isDangerous}
    >
      <Text size="sm" component="div">
        {children}
      </Text>
      {typed === undefined ? null : (
        <TextInput
          label={rich('common.typeToConfirm', { text: <Code>{typed}</Code> })}
          data-autofocus
          value={text}
          autoComplete="off"
          onChange={(event) => setText(event.currentTarget.value)}
        />
      )}
    </DialogForm>
  )
}

interface LeaveGuardProps {
  /**
   * True if there are unsaved changes; read when the user navigates. Navigation that changes only the query
   * string is not guarded.
   */
  readonly isDirty: RefObject<boolean>
  /** States what will be lost. */
  readonly loss: string
}

export function LeaveGuard({ isDirty, loss }: LeaveGuardProps) {
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) => isDirty.current && current.pathname !== next.pathname,
    enableBeforeUnload: () => isDirty.current,
    withResolver: true,
  })
  return (
    <Dialog
      title={t('common.leaveTitle')}
      isOpen={blocker.status === 'blocked'}
      onClose={() => blocker.reset?.()}
    >
      <Stack gap="md">
        <Text size="sm">{loss}</Text>
        <Group justify="flex-end" gap="xs">
          <Button variant="default" data-autofocus onClick={() => blocker.reset?.()}>
            {t('common.stay')}
          </Button>
          <Button color="red.8" onClick={() => blocker.proceed?.()}>
            {t('common.leave')}
          </Button>
        </Group>
      </Stack>
    </Dialog>
  )
}

/** Close functions of the open dialogs, topmost last. */
const openDialogs: (() => void)[] = []

function useEscape(isOpen: boolean, onEscape: () => void): void {
  const latest = useRef(onEscape)
  latest.current = onEscape
  useEffect(() => {
    if (!isOpen) return
    const close = () => latest.current()
    openDialogs.push(close)
    if (openDialogs.length === 1) window.addEventListener('keydown', closeTop, { capture: true })
    return () => {
      openDialogs.splice(openDialogs.indexOf(close), 1)
      if (openDialogs.length === 0) window.removeEventListener('keydown', closeTop, { capture: true })
    }
  }, [isOpen])
}

function closeTop({ key, isComposing, target }: KeyboardEvent): void {
  if (key !== 'Escape' || isComposing) return
  // The library sets this attribute while a dropdown is open. Escape must close the dropdown before the
  // dialog.
  if (target instanceof Element && target.getAttribute('data-mantine-stop-propagation') === 'true') return
  openDialogs.at(-1)?.()
}
