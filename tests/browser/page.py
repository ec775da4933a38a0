"""A notebook open in JupyterLab."""

import json

#: What Lab itself prints as errors without anything being wrong with a notebook: parts of the console's text.
LAB_NOISE = (
    # a restart cancels what the debugger had asked the old kernel
    "Could not restore the debugger state",
)

#: What stands where a widget could not be shown.
BROKEN = ("Error displaying widget", "model not found", "Loading widget", "Failed to load model")

#: Number of code cells that have not ended, or the status of a kernel that is not idle.
BUSY = """() => {
    const panel = window.jupyterapp.shell.currentWidget;
    const kernel = panel.sessionContext.session?.kernel;
    if (!kernel || kernel.status !== 'idle') return kernel ? kernel.status : 'no kernel';
    const cells = panel.content.widgets.filter(c => c.model.type === 'code');
    const open = cells.filter(c => c.model.executionState === 'running' || c.model.executionCount === null);
    return open.length ? `${open.length} cells` : '';
}"""

ERRORS = """() => window.jupyterapp.shell.currentWidget.content.widgets
    .filter(c => c.model.type === 'code')
    .flatMap(c => c.model.outputs.toJSON())
    .filter(o => o.output_type === 'error' || o.name === 'stderr')
    .map(o => o.evalue || o.text)"""

RUN = """async code => {
    const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
    const future = kernel.requestExecute({code, silent: false, store_history: false});
    let text = '';
    future.onIOPub = m => {
        if (m.header.msg_type === 'stream') text += m.content.text;
        if (m.header.msg_type === 'error') text += m.content.ename + ': ' + m.content.evalue;
    };
    await future.done;
    return text;
}"""

#: Digest of the bytes of a picture.
DIGEST = """async img => {
    const bytes = await (await fetch(img.src)).arrayBuffer();
    const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
    return Array.from(hash, b => b.toString(16).padStart(2, '0')).join('');
}"""

#: Milliseconds from a key on a slider to the next picture inside an element.
ANSWER_MS = """([handle, box]) => new Promise(resolve => {
    let begun = 0;
    const was = box.querySelector('img').src;
    handle.addEventListener('keydown', () => { begun = performance.now(); }, {once: true, capture: true});
    const watch = new MutationObserver(async () => {
        // the slider's own number changes at once
        if (box.querySelector('img')?.src === was) return;
        watch.disconnect();
        await box.querySelector('img').decode();
        resolve(performance.now() - begun);
    });
    watch.observe(box, {attributes: true, attributeFilter: ['src'], childList: true, subtree: true});
})"""


class Notebook:
    """One notebook in one page."""

    def __init__(self, browser, lab, name, size=(1280, 800)):
        address, token = lab
        self.context = browser.new_context(viewport={"width": size[0], "height": size[1]})
        self.page = self.context.new_page()
        self.console = []
        self.page.on("console", lambda m: m.type == "error" and self.console.append(f"{m.text} {m.location['url']}"))
        self.page.on("pageerror", lambda error: self.console.append(str(error)))
        workspace = name.replace(".", "-")
        self.page.goto(f"{address}/lab/workspaces/{workspace}/tree/notebooks/{name}?token={token}", timeout=120_000)
        self.page.wait_for_function("() => window.jupyterapp?.shell?.currentWidget?.sessionContext", timeout=120_000)
        self.page.wait_for_function(
            "() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'",
            timeout=120_000,
        )

    def run_all(self, timeout_s=180):
        """Restart the kernel and run all cells, as the menu does, and wait for the end."""
        self.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:restart-run-all'); }")
        self.page.locator("dialog .jp-mod-accept, .jp-Dialog .jp-mod-accept").first.click()
        # the old counts are there until the kernel is
        self.page.wait_for_function(f"() => ({BUSY})() !== ''", timeout=30_000)
        self.page.wait_for_function(f"() => ({BUSY})() === ''", timeout=timeout_s * 1000)

    def errors(self):
        return self.page.evaluate(ERRORS)

    def noise(self):
        return [line for line in self.console if not any(known in line for known in LAB_NOISE)]

    def python(self, code):
        """Run code in the notebook's kernel and return what it printed."""
        return self.page.evaluate(RUN, code)

    def python_value(self, expression):
        return json.loads(self.python(f"import json; print(json.dumps({expression}))"))

    def digest(self, image):
        return image.evaluate(DIGEST)

    def drag(self, handle, share):
        """Drag a slider's handle by a share of its track."""
        handle.scroll_into_view_if_needed()
        track = handle.locator("xpath=ancestor::div[contains(@class,'noUi-target')]").bounding_box()
        box = handle.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.mouse.move(x + share * track["width"] / 2, y, steps=4)
        self.page.mouse.move(x + share * track["width"], y, steps=4)
        self.page.mouse.up()

    def answer_ms(self, handle, image, key):
        """Press a key on a slider and measure how long the next picture takes."""
        handle.focus()
        # the element above the picture stays when the picture is replaced
        box = image.locator("xpath=ancestor::div[contains(@class,'widget-vbox')][1]")
        self.page.evaluate(
            f"pair => {{ window.answer = ({ANSWER_MS})(pair); }}", [handle.element_handle(), box.element_handle()]
        )
        handle.press(key)
        return self.page.evaluate("() => window.answer")

    def close(self):
        self.context.close()
