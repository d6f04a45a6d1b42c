"""Writes capsules.txt: a tiny CapsNet written with basic PyTorch ops, step by step as in the paper.
Run it like make_goldens.py.

Sabour, Frosst & Hinton 2017: convolution, primary capsules, routing by agreement (3 rounds, with
the gradient through all of them, and with constant coupling coefficients), margin loss, mask and
decoder. float64; the weights have 8 bits, so that the file is short. No number comes from Braid.
"""

import torch
from torch.nn import functional as F

from make_goldens import File, eighths

N, SIDE, MAPS, TYPES, SIZE, CLASSES, OUT = 2, 7, 3, 2, 4, 3, 5
PLACES = 2 * 2  # 7 → 5 by a 3×3 convolution, → 2 by one with stride 2
NUMBERS = {
    "conv.weight": (MAPS, 1, 3, 3),
    "conv.bias": (MAPS,),
    "primary.conv.weight": (TYPES * SIZE, MAPS, 3, 3),
    "primary.conv.bias": (TYPES * SIZE,),
    "digits.weight": (TYPES * PLACES, SIZE, CLASSES * OUT),
    "digits.bias": (CLASSES, OUT),
    "decoder.weight": (SIDE * SIDE, CLASSES * OUT),
    "decoder.bias": (SIDE * SIDE,),
}


def squash(s):
    length = s.norm(dim=-1, keepdim=True)
    return length**2 / (1 + length**2) * s / length


def route(votes, bias, detach):
    b = torch.zeros(votes.shape[:3], dtype=votes.dtype)
    for round in range(3):
        c = b.softmax(dim=2)
        s = (c.unsqueeze(3) * votes).sum(dim=1) + bias
        v = squash(s)
        if round < 2:
            b = b + (votes * v.unsqueeze(1)).sum(dim=3)
            if detach:
                b = b.detach()
    return v


def net(p, images, labels, detach):
    h = F.relu(F.conv2d(images, p["conv.weight"], p["conv.bias"]))
    h = F.conv2d(h, p["primary.conv.weight"], p["primary.conv.bias"], stride=2)
    places = []
    for kind in range(TYPES):
        for y in range(h.shape[2]):
            for x in range(h.shape[3]):
                places.append(squash(h[:, kind * SIZE : (kind + 1) * SIZE, y, x]))
    u = torch.stack(places, dim=1)
    weight = p["digits.weight"].reshape(TYPES * PLACES, SIZE, CLASSES, OUT)
    v = route(torch.einsum("nis,isjd->nijd", u, weight), p["digits.bias"], detach)
    lengths = v.norm(dim=2)
    there = F.one_hot(labels, CLASSES).double()
    margin = there * F.relu(0.9 - lengths) ** 2 + 0.5 * (1 - there) * F.relu(lengths - 0.1) ** 2
    masked = (v * there.unsqueeze(2)).flatten(1)
    image = torch.sigmoid(F.linear(masked, p["decoder.weight"], p["decoder.bias"]))
    loss = margin.sum(1).mean() + 0.0005 * ((image - images.flatten(1)) ** 2).sum(1).mean()
    return u, v, lengths, image, loss


def main():
    file = File("capsules.txt", "a tiny CapsNet, float64")
    images = eighths((N, 1, SIDE, SIDE), 1, 256) + 0.5
    labels = torch.tensor([2, 0])
    file.tensor("images", images)
    file.tensor("labels", labels)
    state = {name: eighths(shape, 2 + i, 256) for i, (name, shape) in enumerate(NUMBERS.items())}
    file.tensors("state.", state)
    for detach in (False, True):
        p = {name: value.clone().requires_grad_() for name, value in state.items()}
        x = images.clone().requires_grad_()
        results = net(p, x, labels, detach)
        results[-1].backward()
        if not detach:
            file.tensors("", zip(("primary", "digits", "lengths", "image", "loss"), results))
        kind = "detached" if detach else "grad"
        for name in ("conv.weight", "primary.conv.weight", "digits.weight", "digits.bias"):
            if not detach or name in ("conv.weight", "digits.weight"):
                file.tensor(f"{kind}.{name}", p[name].grad)
        file.tensor(f"{kind}.images", x.grad)
    file.write()


if __name__ == "__main__":
    main()
